import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { Source } from '../source.ts'
import { follow } from './follow.ts'

const pauses: number[] = []
vi.mock('./pause.ts', () => ({
  async pause(ms: number) {
    pauses.push(ms)
  },
}))
beforeEach(() => void pauses.splice(0))

type Step = string | Error | 'end' | 'hang'

/** A source whose watches follow scripted steps, one list for each watch. */
function scripted(...watches: readonly (readonly Step[])[]): Source {
  let count = 0
  return {
    name: 'scripted',
    async *watch() {
      for (const step of watches[count++] ?? ['hang']) {
        if (step === 'hang') await new Promise(() => {})
        if (step instanceof Error) throw step
        yield { text: step, version: '' }
      }
    },
  }
}

/** Follows until there were so many events, and returns them. */
async function hear(source: Source, times: number, options: Parameters<typeof follow>[3] = {}): Promise<string[]> {
  const controller = new AbortController()
  const heard: string[] = []
  const note = (word: string) => {
    heard.push(word)
    if (heard.length === times) controller.abort()
  }
  const onDocument = ({ text }: { text: string }) => note(text)
  await follow(source, { onDocument, onError: error => note(error.message) }, controller.signal, options)
  return heard
}

const down = new Error('down')

describe('follow', () => {
  it('a follower gets each document and each failure, and the watch starts again', async () => {
    const heard = await hear(scripted(['one', 'two', down], [down], ['two']), 5)
    expect(heard).toEqual(['one', 'two', 'down', 'down', 'two'])
  })

  it('follow pauses longer after each failure, from 500 ms to 30 s', async () => {
    await hear(scripted(...Array(9).fill([down])), 9, { random: () => 1 })
    expect(pauses).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 30_000])
  })

  it('follow never pauses for less than the minimum, so that a fleet does not reconnect all at once', async () => {
    await hear(scripted(...Array(4).fill([down])), 4, { random: () => 0, retryMs: [20, 100] })
    expect(pauses).toEqual([20, 20, 20, 20])
    await hear(scripted(...Array(4).fill([down])), 4, { random: () => 0.5, retryMs: [20, 100] })
    expect(pauses.slice(4)).toEqual([30, 50, 60, 60])
  })

  it('follow pauses briefly again after a document', async () => {
    await hear(scripted([down], [down], ['one', down], [down]), 5, { random: () => 1 })
    expect(pauses).toEqual([1000, 2000, 1000, 2000])
  })

  it('follow still pauses after a thousand failures', async () => {
    await hear(scripted(...Array(1000).fill([down])), 1000, { random: () => 1 })
    expect(pauses.at(-1)).toBe(30_000)
  })

  it('follow treats a watch that ends by itself as a failure', async () => {
    expect(await hear(scripted(['one'], ['two']), 3)).toEqual(['one', 'scripted: ended by itself', 'two'])
  })

  it('follow ends at once by its signal, even if the source does not listen', async () => {
    const controller = new AbortController()
    const following = follow(scripted(['hang']), { onDocument() {}, onError() {} }, controller.signal)
    controller.abort()
    await following
  })

  it('follow does nothing if the signal has already aborted', async () => {
    const source = scripted(['one'])
    const watch = vi.spyOn(source, 'watch')
    await follow(source, { onDocument() {}, onError() {} }, AbortSignal.abort())
    expect(watch).not.toHaveBeenCalled()
  })

  it('a document that arrives after the end is not reported', async () => {
    const controller = new AbortController()
    let give = () => {}
    const source: Source = {
      name: 'late',
      async *watch() {
        await new Promise<void>(resolve => {
          give = resolve
        })
        yield { text: 'late', version: '' }
      },
    }
    const onDocument = vi.fn()
    const following = follow(source, { onDocument, onError() {} }, controller.signal)
    controller.abort()
    give()
    await following
    await new Promise(resolve => setImmediate(resolve))
    expect(onDocument).not.toHaveBeenCalled()
  })

  it('a watch continues when its follower throws, and reports the error', async () => {
    const controller = new AbortController()
    const errors: string[] = []
    const follower = {
      async onDocument({ text }: { text: string }) {
        if (text === 'two') controller.abort()
        throw new Error(`cannot use ${text}`)
      },
      onError(error: Error) {
        errors.push(error.message)
        throw new Error('nor this')
      },
    }
    await follow(scripted(['one', down], ['two']), follower, controller.signal)
    expect(errors).toEqual(['cannot use one', 'down'])
  })

  it('follow waits until a document is processed before it takes the next', async () => {
    const controller = new AbortController()
    const log: string[] = []
    const follower = {
      async onDocument({ text }: { text: string }) {
        log.push(`begin ${text}`)
        await new Promise(resolve => setImmediate(resolve))
        log.push(`end ${text}`)
        if (text === 'two') controller.abort()
      },
      onError() {},
    }
    await follow(scripted(['one', 'two']), follower, controller.signal)
    expect(log).toEqual(['begin one', 'end one', 'begin two', 'end two'])
  })

  it('follow adds no listener for good to the signal', async () => {
    const controller = new AbortController()
    const added = vi.spyOn(controller.signal, 'addEventListener')
    const removed = vi.spyOn(controller.signal, 'removeEventListener')
    const watches = Array<Step[]>(50).fill([down])
    await follow(
      scripted(...watches, ['end']),
      { onDocument: () => controller.abort(), onError() {} },
      controller.signal,
    )
    expect(added.mock.calls.length).toBe(51)
    expect(removed.mock.calls.length).toBe(51)
  })
})
