import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { run } from '../packages/gateway/src/cli/run.ts'

const scratch = mkdtempSync(join(tmpdir(), 'diana-check-'))
afterAll(() => rmSync(scratch, { recursive: true }))

function file(name: string, text: string): string {
  const path = join(scratch, name)
  writeFileSync(path, text)
  return path
}

async function check(args: readonly string[], input = ''): Promise<{ code: number; out: string[]; err: string[] }> {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await run(['check', ...args], {
    input: (async function* () {
      yield Buffer.from(input)
    })(),
    print: line => void out.push(line),
    printError: line => void err.push(line),
  })
  return { code, out, err }
}

const plugin = file(
  'own.mjs',
  `export const algorithms = [{
    name: 'ever', limit: 'count', options: {},
    meter: () => ({ slots: 1, patienceUs: 0, held: false, delay: () => 0, take() {}, giveBack() {}, remaining: () => 1, idleAt: () => 0 }),
  }]
  export const dimensions = [{ name: 'weekday', argument: 'none', read: () => 'monday' }]
  export const sources = [{ name: 'database', options: {}, create: () => ({ name: 'database', async *watch() {} }) }]`,
)
const text = 'remote: { database: here }\nrules: [{ id: own, by: weekday, limit: 2, algorithm: ever }]\n'
const good = 'rules:\n  - { id: all, limit: 5/s }\n'

describe('diana check with plugins', () => {
  test('diana check knows the options of a module given by --plugin, from any directory', async () => {
    const config = file('own.yaml', text)
    expect(await check([config])).toMatchObject({ code: 1 })
    const ok = { code: 0, out: [`${config}: ok, 1 rule`], err: [] }
    expect(await check([config, '--plugin', plugin])).toEqual(ok)
    expect(await check([config, '--plugin', relative(process.cwd(), plugin)])).toEqual(ok)
    expect(await check(['--plugin', plugin, '-'], text)).toEqual({ code: 0, out: ['stdin: ok, 1 rule'], err: [] })
  })

  test('diana check knows the options of a module that the document names, also if it is given too', async () => {
    const config = file('named.yaml', `plugins: [./own.mjs]\n${text}`)
    const ok = { code: 0, out: [`${config}: ok, 1 rule`], err: [] }
    expect(await check([config])).toEqual(ok)
    expect(await check([config, '--plugin', plugin])).toEqual(ok)
  })

  test('diana check reports an unloadable plugin as a mistake of the document that names it', async () => {
    file('throws.mjs', 'throw new Error("broken on purpose")')
    const config = file('bad.yaml', `plugins: [./throws.mjs]\n${text}`)
    const other = file('good.yaml', good)
    expect(await check([config, other])).toEqual({
      code: 1,
      out: [`${config}:1:1: the plugin ./throws.mjs cannot be loaded: broken on purpose`, `${other}: ok, 1 rule`],
      err: [],
    })
    const { out } = await check([config, '--json'])
    expect(JSON.parse(out.join('\n'))).toMatchObject([{ ok: false, mistakes: [{ line: 1, column: 1 }] }])
  })

  test('diana check reports an unloadable --plugin for any files', async () => {
    const { code, out, err } = await check([file('good.yaml', good), '--plugin', './none.mjs'])
    expect([code, out]).toEqual([1, []])
    expect(err[0]).toMatch(/^--plugin: the plugin \.\/none\.mjs cannot be loaded: Cannot find module/)
  })
})

describe('diana check', () => {
  test('diana check reads several files and standard input, and exits with 1 if one of them is bad', async () => {
    const first = file('first.yaml', good)
    const second = file('second.yaml', 'rules: []')
    expect(await check([first, '-'], good)).toMatchObject({
      code: 0,
      out: [`${first}: ok, 1 rule`, 'stdin: ok, 1 rule'],
    })
    const { code, out } = await check([first, second, '-', first], 'rules: 5')
    expect(code).toBe(1)
    expect(out).toEqual([
      `${first}: ok, 1 rule`,
      expect.stringContaining(`${second}:1:8: rules`),
      'stdin:1:8: rules must be a list, not 5',
      `${first}: ok, 1 rule`,
    ])
  })

  test('diana check cannot read standard input twice', async () => {
    expect(await check(['-', '-'], good)).toMatchObject({ code: 2, out: [] })
  })

  test.each([
    ['standard input', '-'],
    ['a file', ''],
  ])('diana check reads no more of %s than a document may hold', async (_, name) => {
    let pulled = 0
    const endless = async function* () {
      while (true) {
        pulled++
        yield Buffer.alloc(1024 * 1024, '#')
      }
    }
    const path = name || file('large.yaml', '#'.repeat(6 * 1024 * 1024))
    const out: string[] = []
    const code = await run(['check', path], { input: endless(), print: line => void out.push(line), printError() {} })
    expect([code, out[0]]).toEqual([1, expect.stringContaining('larger than 4 MiB')])
    expect(pulled).toBeLessThan(7)
  })

  test.each([
    ['a file that is not there', 'no-such.yaml', 'ENOENT'],
    ['a directory', '.', 'EISDIR'],
  ])('diana check says why it cannot read %s', async (_, name, reason) => {
    const path = join(scratch, name)
    expect(await check([path])).toEqual({
      code: 1,
      out: [],
      err: [`diana check: ${path} cannot be read (${reason}): check the path`],
    })
  })
})
