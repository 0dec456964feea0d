import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { commentFaults, titleFaults } from './helpers/sentences.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

/** The sources whose comments are checked: all of the packages but the library's stores and algorithms. */
const checked = /^packages\/(?:(?:gateway|dashboard)\/src|limiter\/src\/(?!(?:stores|algorithms)\/))/

function listed(pattern: string): string[] {
  const names = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', pattern], { cwd: root })
  return [...new Set(names.toString().split('\n'))].filter(name => name !== '')
}

function read(file: string): string {
  try {
    return readFileSync(join(root, file), 'utf8')
  } catch {
    return '' // deleted, and not committed yet
  }
}

describe('sentences', () => {
  it.each([
    ['/** What is wrong with a path. */\nconst fault = 1', 'begins with a statement'],
    ['/** Of the logs that workers write. */\nreadonly level: string', 'begins with a statement'],
    ['/** A pause between tries. */\nfunction pause(ms: number): void {', 'a verb in -s'],
    ['/** The connection has closed. */\n#onClose(): void {', 'a verb in -s'],
    ['/** A caller may wait. */\nreadonly mayWait: boolean', '"True if"'],
    ['/** No call waits for so long. */\nconst waitMs = 100', '"so many"'],
    ['// whoever asks', 'rare word'],
    ['/**\n * Returns a path. /\n */\nfunction path(): string {', 'no slash'],
    ['// what was read before stays in sight', 'a subject'],
    ['/** One call in so many is timed. */\nreadonly durations: Durations', '"so many"'],
  ])('the check of comments finds the fault of %j', (source, rule) => {
    expect(commentFaults(source).map(fault => fault.rule)).toEqual([expect.stringContaining(rule)])
  })

  it.each([
    '/** Returns what is wrong with a path. */\nfunction fault(path: string): string {',
    '/** True if a caller may wait. */\nreadonly mayWait: boolean',
    '/** True if a caller may wait. */\nfunction mayWait(call: Call): boolean {',
    '/** The longest wait of a call. */\nconst waitMs = 100',
    '// the shell, other, this, there: no rare words',
    '// so many errors that nothing else is seen, and so long as it lasts',
  ])('the check of comments accepts %j', source => {
    expect(commentFaults(source)).toEqual([])
  })

  it('the check of titles finds titles without a subject', () => {
    const titles = ['is replaced if it never answers', 'what is not settled is released', 'a freed slot admits a call']
    const source = titles.map(title => `  it('${title}', () => {})`).join('\n')
    expect(titleFaults(source).map(fault => fault.text)).toEqual(titles.slice(0, 2))
  })

  it('comments of the gateway, the library and the dashboard are statements', () => {
    const files = listed('packages/*').filter(file => checked.test(file) && /(?<!\.test|generated)\.tsx?$/.test(file))
    expect(files.length).toBeGreaterThan(500)
    const faults = files.flatMap(file =>
      commentFaults(read(file)).map(({ line, text, rule }) => `${file}:${line}: ${rule}: ${text}`),
    )
    expect(faults).toEqual([])
  })

  it('titles of tests are sentences that stand alone', () => {
    const files = listed('*.test.ts')
    const faults = files.flatMap(file =>
      titleFaults(read(file)).map(({ line, text, rule }) => `${file}:${line}: ${rule}: ${text}`),
    )
    expect(files.length).toBeGreaterThan(300)
    expect(faults).toEqual([])
  })
})
