import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { FileSink, type LineSink } from './line-sinks.ts'
import { LineWriter } from './line-writer.ts'

let folder: string
let troubles: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'diana-lines-'))
  troubles = []
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const onTrouble = (trouble: string): void => {
  troubles.push(trouble)
}

/** A sink whose writes end when the test says so. */
class StalledSink implements LineSink {
  readonly chunkBytes = 100
  readonly written: string[] = []
  #waiting: (() => void)[] = []
  isStalled = true

  async write(chunk: Buffer): Promise<void> {
    if (this.isStalled) await new Promise<void>(resolve => this.#waiting.push(resolve))
    this.written.push(chunk.toString())
  }

  resume(): void {
    this.isStalled = false
    for (const go of this.#waiting.splice(0)) go()
  }

  async refresh(): Promise<void> {}
  async close(): Promise<void> {}
}

describe('a line writer', () => {
  test('a line writer drops and counts lines while its reader stalls, keeps a bounded number, and reports it when the reader goes on', async () => {
    const sink = new StalledSink()
    const writer = new LineWriter(sink, { onTrouble, maxPendingBytes: 1000 })
    for (let at = 0; at < 500; at++) writer.write(`${String(at).padStart(9, '0')}\n`)
    expect(writer.dropped).toBe(400)
    expect(troubles).toEqual([])
    sink.resume()
    await expect.poll(() => sink.written.join('').length).toBe(1000)
    writer.write('afterward\n')
    await writer.close()
    expect(sink.written.join('').endsWith('000000099\nafterward\n')).toBe(true)
    expect(writer.dropped).toBe(400)
    expect(troubles).toEqual([expect.stringContaining('400 lines of the access log were dropped')])
  })

  test('a line writer writes whole lines only, several at a time', async () => {
    const sink = new StalledSink()
    sink.resume()
    const writer = new LineWriter(sink, { onTrouble })
    const lines = Array.from({ length: 200 }, (_, at) => `${'x'.repeat(at % 130)}\n`)
    for (const line of lines) writer.write(line)
    await writer.close()
    expect(sink.written.join('')).toBe(lines.join(''))
    expect(sink.written.every(chunk => chunk.endsWith('\n'))).toBe(true)
    expect(sink.written.every(chunk => chunk.length <= 100 || chunk.indexOf('\n') === chunk.length - 1)).toBe(true)
    expect(sink.written.length).toBeLessThan(lines.length)
  })

  test('a line writer ends within about a second although its reader has stopped', async () => {
    const writer = new LineWriter(new StalledSink(), { onTrouble })
    writer.write('line\n')
    const began = performance.now()
    await writer.close()
    expect(performance.now() - began).toBeLessThan(5000)
  })

  test('a line writer goes on in a new file after the old one was renamed, and loses no line', async () => {
    const [path, old] = [join(folder, 'access.log'), join(folder, 'access.log.1')]
    const writer = new LineWriter(await FileSink.open(path), { onTrouble })
    const written: string[] = []
    for (let at = 0; at < 1000; at++) {
      written.push(`line ${at}\n`)
      writer.write(written.at(-1)!)
      if (at === 500) {
        await writer.reopen()
        renameSync(path, old)
        await writer.reopen()
      }
    }
    await writer.close()
    expect(readFileSync(old, 'utf8')).toBe(written.slice(0, 501).join(''))
    expect(readFileSync(path, 'utf8')).toBe(written.slice(501).join(''))
  })

  test('a line writer creates a renamed file again without a signal', async () => {
    const path = join(folder, 'access.log')
    const writer = new LineWriter(await FileSink.open(path), { onTrouble })
    writer.write('before\n')
    await writer.reopen()
    renameSync(path, join(folder, 'old'))
    await expect
      .poll(
        () => {
          writer.write('after\n')
          return existsSync(path)
        },
        { timeout: 5000 },
      )
      .toBe(true)
    await writer.close()
  })

  test('a line writer counts lines as dropped that a full disk did not take', async () => {
    const writer = new LineWriter(await FileSink.open('/dev/full'), { onTrouble })
    writer.write('line\n')
    writer.write('line\n')
    await writer.close()
    expect(writer.dropped).toBe(2)
    expect(troubles).toEqual([expect.stringContaining('ENOSPC')])
  })
})
