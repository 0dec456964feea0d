import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { randomRuns } from '@test/random-runs'
import { afterAll, describe, expect, it } from 'vitest'
import { run } from './run.ts'

const root = fileURLToPath(new URL('../../../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'diana-cases-'))
afterAll(() => rmSync(folder, { recursive: true }))

interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function diana(...args: string[]): Promise<Ran> {
  const [out, err] = [[] as string[], [] as string[]]
  const print = (line: string): void => void out.push(line)
  const printError = (line: string): void => void err.push(line)
  const code = await run(args, { input: (async function* () {})(), print, printError })
  const plain = (lines: string[]): string =>
    lines
      .join('\n')
      .replaceAll(`${relative(process.cwd(), folder)}/`, '')
      .replaceAll(`${folder}/`, '')
  return { code, out: plain(out), err: plain(err) }
}

function write(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const rules = `answer: { status: 429 }
store: { redis: redis://127.0.0.1 }
rules:
  - { id: share, match: { path: /share }, by: ip, limit: 10/h, algorithm: fixed-window }
  - { id: none, match: { path: /none }, by: ip, limit: 10/h, algorithm: fixed-window, whenStoreDown: refuse }
  - { id: all, match: { path: /all }, by: ip, limit: 10/h, algorithm: fixed-window, whenStoreDown: allow }
  - { id: alone, match: { path: /alone }, by: ip, limit: 10/h, algorithm: fixed-window, whenStoreDown: local }
  - { id: slow, match: { path: /slow }, limit: 1, algorithm: concurrency, whenFull: wait, queue: { size: 5, timeout: 1s } }
  - { id: tokens, match: { path: /tokens }, by: account, limit: 100/m, cost: { overrun: debt } }
  - { id: trial, match: { path: /trial }, limit: 1/s, whenFull: shadow }
`

/** Runs one case on these rules. */
async function test(body: string, ...options: string[]): Promise<Ran> {
  const cases = write('case.yaml', `cases:\n  - name: this case\n${body.replace(/^/gm, '    ')}\n`)
  return await diana('test', write('rules.yaml', rules), cases, ...options)
}

describe('the cases of the recipes and examples', () => {
  const files = ['examples/recipes', 'examples/llm'].flatMap(place =>
    readdirSync(join(root, place))
      .filter(name => name.endsWith('.cases.yaml'))
      .map(name => join(root, place, name)),
  )

  it('all cases pass, and every recipe has some', async () => {
    const recipes = readdirSync(join(root, 'examples/recipes')).filter(name => name.endsWith('.yaml'))
    expect(
      recipes.filter(name => !name.includes('.cases.') && !recipes.includes(name.replace('.yaml', '.cases.yaml'))),
    ).toEqual([])
    const { code, out } = await diana('test', ...files)
    expect(out).toMatch(/^ok: \d+ cases, \d+ calls, 0 failed/m)
    expect(code).toBe(0)
  })

  // each change runs the cases again: in npm test those of two recipes
  const mutated = randomRuns(2) > 1 ? files : files.filter(file => /login|password-reset/.test(file))
  it('the cases notice at least 90 percent of the changes of their rules', async () => {
    const { code, out } = await diana('test', ...mutated, '--mutate', '--least-score', '90')
    expect(out).toMatch(/changes of .*: \d+ of \d+ are noticed/)
    expect(code).toBe(0)
  })
})

describe('docs/testing.md', () => {
  const page = readFileSync(join(root, 'docs/testing.md'), 'utf8')
  const blocks = [...page.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, kind, text]) => ({
    kind: kind!,
    text: text!,
  }))
  const yaml = blocks.filter(({ kind }) => kind === 'yaml').map(({ text }) => text)
  const shown = blocks.filter(({ kind }) => kind === 'console').map(({ text }) => text)
  const seconds = (text: string): string => text.replace(/\d+\.\d s$/gm, '0.1 s')
  const lines = (text: string): string[] =>
    text
      .trim()
      .split('\n')
      .filter(line => !line.startsWith('$') && line !== '…')

  it('the walk-through prints what the page shows', async () => {
    const [file, cases] = [write('diana.yaml', yaml[0]!), write('cases.yaml', yaml[1]!)]
    expect(seconds((await diana('test', file, cases, '--coverage')).out).split('\n')).toEqual(lines(shown[0]!))
    expect(seconds((await diana('test', file, cases, '--mutate')).out).split('\n')).toEqual(
      expect.arrayContaining(lines(shown[2]!)),
    )
    expect((await diana('bound', file)).out.split('\n')).toEqual(expect.arrayContaining(lines(shown[3]!)))
    write('diana.yaml', yaml[0]!.replace('burst: 200', 'burst: 150'))
    const failed = await diana('test', file, cases)
    expect(failed.code).toBe(1)
    expect(seconds(failed.out).split('\n').filter(Boolean)).toEqual(lines(shown[1]!).filter(Boolean))
  })

  it('of two limits for the same calls the stricter one holds in both orders, and the looser one is reported', async () => {
    const [head, one, other] = yaml[2]!.trim().split('\n')
    const cases = write(
      'toys.yaml',
      `call: GET /toystore\nwho: { account: ann }\ncases:\n  - name: five\n    steps: [{ repeat: 20, expect: '5 pass, 15 refused' }]\n`,
    )
    for (const order of [
      [one, other],
      [other, one],
    ]) {
      const file = write('toys.rules.yaml', [head, ...order].join('\n'))
      expect((await diana('test', file, cases)).code).toBe(0)
      const { code, out } = await diana('check', '--strict', file)
      expect(code).toBe(1)
      expect(out).toMatch(/^toys.rules.yaml:[23]:11 rule "loose": it can never refuse a call: "strict" refuses earlier/)
    }
  })
})

describe('what a case can say', () => {
  it.each([
    [
      'two processes share a limit',
      'processes: 2\ncall: GET /share\nsteps: [{ repeat: 5, process: 1 }, { repeat: 5, process: 2 }, { expect: refused by share }]',
    ],
    [
      'each process has its share while the store is down, and both report when it is back',
      'processes: 2\ncall: GET /share\nstore: down from 10s to 20s\nsteps: [{ at: 11s, repeat: 9, expect: 5 pass }, { at: 12s, process: 2, repeat: 9, expect: 5 pass }, { at: 30s, expect: refused by share }]',
    ],
    [
      'a rule refuses while the store is down',
      'call: GET /none\nstore: down from 10s to 20s\nsteps: [{ at: 11s, expect: refused by none }, { at: 30s, expect: 9 left }]',
    ],
    [
      'a rule lets all calls pass while the store is down',
      'call: GET /all\nstore: down from 10s\nsteps: [{ at: 11s, repeat: 30 }]',
    ],
    [
      'each process counts the whole limit while the store is down',
      'processes: 2\ncall: GET /alone\nstore: [down from 1s to 2s, down from 10s to 20s]\nsteps: [{ at: 11s, repeat: 20, expect: 10 pass }, { process: 2, repeat: 20, expect: 10 pass }]',
    ],
    [
      'a call waits for the one before it',
      'call: GET /slow\nsteps: [{ takes: 300ms }, { takes: 10s, expect: waits 300ms }, { at: 1s, expect: timeout by slow }]',
    ],
    [
      'a caller who leaves gives the place back',
      'call: GET /slow\nsteps: [{ takes: 300ms, ends: left }, { at: 300ms, expect: waits 0ms }]',
    ],
    [
      'a settled cost is a debt',
      'call: GET /tokens\nwho: { account: ann }\nsteps: [{ cost: 10, settle: 150 }, { expect: refused by tokens }, { who: { account: bob }, cost: 10, settle: { tokens: 5 } }, { who: { account: bob }, expect: 94 left of tokens }]',
    ],
    [
      'a rule in shadow reports',
      'call: GET /trial\nsteps: [{ expect: pass }, { expect: reported by trial }, { at: 1s, expect: 0 left of trial }]',
    ],
    [
      'counts, headers and the status of the last call',
      'call: GET /share\nsteps: [{ repeat: 12 calls in 1s, expect: { passed: 10, refused: { share: 2 }, status: 429, headers: { Retry-After: "3600" } } }]'.replace(
        '3600',
        '3600',
      ),
    ],
    [
      'numbers of a loop stand in callers and paths',
      'call: "GET /share?page={n}"\nsteps: [{ repeat: 100, who: { ip: "10.0.0.{n}" } }]',
    ],
    [
      'a month passes in a moment',
      'call: GET /share\nsteps: [{ repeat: 10 }, { after: 30d, repeat: 10 }, { expect: refused }]',
    ],
  ])('%s', async (_, body) => {
    const { out, err, code } = await test(body)
    expect(`${out}\n${err}`).toContain('1 passed')
    expect(code).toBe(0)
  })

  it.each([
    [
      'one call more than pass',
      'call: GET /share\nsteps: [{ repeat: 11 }]',
      'case.yaml:4:13: at 0s, call 11 of 11, GET /share: expected pass, got refused by share',
    ],
    [
      'another rule',
      'call: GET /share\nsteps: [{ expect: refused by none }]',
      'expected refused by none, got pass, 9 left',
    ],
    [
      'another wait',
      'call: GET /slow\nsteps: [{ takes: 1s }, { expect: waits 2s }]',
      'expected waits 2s, got pass, waits 1s',
    ],
    [
      'another count',
      'call: GET /share\nsteps: [{ repeat: 20, expect: 9 pass }]',
      'expected 9 pass, got 10 passed, 10 refused (10 by share)',
    ],
    [
      'another header',
      'call: GET /share\nsteps: [{ expect: { headers: { RateLimit: x } } }]',
      'expected ratelimit: x, got "share"',
    ],
  ])('%s than expected is a failure with its line', async (_, body, message) => {
    const { out, code } = await test(body)
    expect(out).toContain(message)
    expect(code).toBe(1)
  })

  it.each([
    ['an unknown word', 'call: GET /\nstep: []', ':4:5: "step" is not known here: did you mean steps?'],
    [
      'an unknown rule',
      'steps: [{ call: GET /, expect: refused by sahre }]',
      'there is no rule "sahre" in the rules: did you mean share?',
    ],
    ['an unknown caller', 'steps: [{ call: GET /, who: ann }]', 'there is no caller "ann"'],
    [
      'an unknown dimension',
      'steps: [{ call: GET /, who: { acount: ann } }]',
      '"acount" is not known here: did you mean account?',
    ],
    ['a number without a unit', 'steps: [{ call: GET /, at: 5 }]', 'write 5ms or 5s'],
    [
      'an earlier moment',
      'steps: [{ call: GET /, at: 5s }, { call: GET /, at: 1s }]',
      'is earlier than the step before',
    ],
    ['no call', 'steps: [{ at: 5s }]', 'call is missing'],
    ['no steps', 'call: GET /', 'this case has no steps'],
    ['an expectation that is none', 'steps: [{ call: GET /, expect: perhaps }]', '"perhaps" is no expectation'],
    [
      'a contradiction',
      'steps: [{ call: GET /, expect: "pass, refused" }]',
      '"refused" contradicts what stands beside it',
    ],
    [
      'an outage that ends before it begins',
      'store: down from 2s to 1s\nsteps: [{ call: GET / }]',
      'store must be such as',
    ],
    ['a row that is too short', 'table: [[at, call], [0s]]', 'this row has 1 cells, and the first one has 2'],
    [
      'a process that is not there',
      'processes: 2\nsteps: [{ call: GET /, process: 3 }]',
      'process must be a whole number from 1 to 2',
    ],
    [
      'several processes for more than a day',
      'processes: 2\nsteps: [{ call: GET /, at: 3d }]',
      'lasts longer than a day',
    ],
    ['what is no YAML', 'steps: [', 'this is not YAML'],
    ['a day that its month does not have', 'begin: 2026-02-30\nsteps: [{ call: GET / }]', 'begin must be a date'],
    ['a moment after 2200', 'begin: 9999-01-01\nsteps: [{ call: GET / }]', 'ends after the year 2200'],
    [
      'an outage within another one',
      'store: [down from 10s to 20s, down from 15s to 25s]\nsteps: [{ call: GET / }]',
      'overlap: write them as one',
    ],
    [
      'a message that is neither true nor false',
      'steps: [{ call: GET /, message: 5 }]',
      'message must be true or false',
    ],
  ])('%s is a mistake with its line and a remedy', async (_, body, message) => {
    const { err, out, code } = await test(body)
    expect(err + out).toMatch(/case\.yaml:\d+:\d+/)
    expect(err + out).toContain(message)
    expect(code).toBe(1)
  })

  it('an outage of rules that count in no store is a mistake', async () => {
    const file = write('local.yaml', 'rules: [{ id: all, limit: 1/s }]')
    const cases = write('out.yaml', 'cases: [{ name: a, store: down from 1s, steps: [{ call: GET / }] }]')
    expect((await diana('test', file, cases)).err).toContain('counts in no store: add store: to the rules')
  })
})

describe('files', () => {
  it('cases name their rules and include others of their folder, and nothing else is read', async () => {
    mkdirSync(join(folder, 'inner'), { recursive: true })
    write('inner/rules.yaml', 'rules: [{ id: one, limit: 1/s }]')
    write(
      'inner/common.yaml',
      'callers: { ann: { ip: 203.0.113.1 } }\ninclude: main.yaml\ncases: [{ name: common, steps: [{ call: GET / }] }]',
    )
    const main = write(
      'inner/main.yaml',
      'rules: rules.yaml\ninclude: common.yaml\ncases: [{ name: main, steps: [{ call: GET /, who: ann }] }]',
    )
    expect((await diana('test', main)).out).toContain('2 passed')
    writeFileSync(main, 'rules: ../rules.yaml\ncases: []')
    expect((await diana('test', main)).err).toContain('is not in the folder of')
    symlinkSync('/etc/hosts', join(folder, 'inner/link.yaml'))
    writeFileSync(main, 'rules: rules.yaml\ninclude: link.yaml\ncases: []')
    expect((await diana('test', main)).err).toContain('is not in the folder of')
  })

  it.each([
    ['include: { a: b }', 'include must be text, not a map'],
    ['include: [[x]]', 'include must be text, not a list'],
    ['rules: { a: b }', 'rules must be text, not a map'],
  ])('%s in a file of cases is a mistake', async (line, message) => {
    const cases = write('odd.yaml', `${line}\ncases: [{ name: a, steps: [{ call: GET / }] }]`)
    const { code, err } = await diana('test', write('rules.yaml', rules), cases)
    expect([code, err]).toEqual([1, expect.stringContaining(`odd.yaml:1:`)])
    expect(err).toContain(message)
  })

  it('an empty file is neither a rule file nor one of cases', async () => {
    const { code, err } = await diana('test', write('empty.yaml', '# nothing\n'), write('rules.yaml', rules))
    expect([code, err]).toEqual([
      1,
      'empty.yaml:1:1: this is neither a rule file nor a file of cases: write rules: or cases: into it',
    ])
  })

  it('--watch watches included files also if they have mistakes', async () => {
    mkdirSync(join(folder, 'watched'), { recursive: true })
    write('watched/rules.yaml', 'rules: [{ id: one, limit: 1/s }]')
    const main = write('watched/main.yaml', 'rules: rules.yaml\ninclude: part.yaml')
    const wrong = 'cases: [{ name: a, stepz: [{ call: GET / }] }]'
    const part = write('watched/part.yaml', wrong)
    const seen: string[] = []
    const print = (line: string): void => void seen.push(line)
    const ended = run(['test', main, '--watch'], { input: (async function* () {})(), print, printError: print }).catch(
      (error: Error) => error.message,
    )
    await expect.poll(() => seen.join('\n')).toMatch(/did you mean steps\?[\s\S]*watching 3 files/)
    // the folder is watched from the next turn on
    await expect
      .poll(() => {
        writeFileSync(part, wrong.replace('stepz', 'steps'))
        return seen.join('\n')
      })
      .toContain('1 passed')
    // what is watched ends with the test
    rmSync(join(folder, 'watched'), { recursive: true })
    void ended
  })

  it('results are printed as TAP and JSON, and written as JUnit', async () => {
    const body = 'call: GET /share\nsteps: [{ repeat: 11 }]'
    const xml = join(folder, 'results.xml')
    const tap = await test(body, '--tap', '--junit', xml)
    expect(tap.out.split('\n').slice(0, 3)).toEqual(['TAP version 14', '1..1', 'not ok 1 - this case'])
    expect(readFileSync(xml, 'utf8')).toMatch(
      /<testsuites tests="1" failures="1">[\s\S]*<failure message="[^"]*expected pass, got refused by share/,
    )
    const json = JSON.parse((await test(body, '--json')).out) as {
      failed: number
      sets: { results: { ok: boolean }[] }[]
    }
    expect([json.failed, json.sets[0]!.results[0]!.ok]).toEqual([1, false])
  })

  it('the calls of an access log become cases that pass, without credentials', async () => {
    const log = write(
      'access.log',
      Array.from(
        { length: 12 },
        (_, i) =>
          `203.0.113.9 - - [05/Jan/2026:12:00:${String(i).padStart(2, '0')} +0000] "GET /share HTTP/1.1" 200 5 "-" "curl"`,
      ).join('\n'),
    )
    const file = write('rules.yaml', rules)
    const recorded = await diana('test', file, '--record', log)
    expect(recorded.out).toContain('expect: refused by share')
    const cases = write('recorded.yaml', recorded.out)
    expect((await diana('test', file, cases)).out).toContain('1 passed')
  })

  it('used wrongly, the command ends with 2 and its usage', async () => {
    for (const args of [
      [],
      [write('rules.yaml', rules)],
      ['--tap', '--json', 'x'],
      ['--nope'],
      ['--least-score', 'x', 'y'],
      [write('rules.yaml', rules), 'cases.yaml', '--least-score', '90'],
      [write('rules.yaml', rules), 'cases.yaml', '--most', '5'],
      [write('rules.yaml', rules), '--record', 'x.log', '--json'],
    ]) {
      const { code, err } = await diana('test', ...args)
      expect([args, code]).toEqual([args, 2])
      expect(err).toContain('usage: diana test')
    }
    expect((await diana('test', 'no-such-file.yaml')).code).toBe(1)
  })
})

describe('diana bound', () => {
  const bound = async (text: string) => {
    const { out } = await diana('bound', write('bound.yaml', text), '--json')
    return JSON.parse(out) as {
      rules: { rule: string; oneCaller: Record<string, number | null>; unbounded?: string }[]
      together: Record<'oneCaller' | 'allCallers', Record<string, number | null>>
      findings: { kind: string; rule: string; message: string; isFault: boolean }[]
    }
  }

  it.each([
    ['limit: 100/m', [100, 100, 6000, 144_000]],
    ['limit: 100/m, algorithm: fixed-window', [200, 200, 6100, 144_100]],
    ['limit: 100/m, algorithm: fixed-window, align: first-call', [199, 199, 6099, 144_099]],
    ['limit: 60/m, algorithm: token-bucket, burst: 10', [10, 69, 3609, 86_409]],
    ['limit: 10/s, algorithm: leaky-bucket, burst: 4', [14, 604, 36_004, 864_004]],
    ['limit: [20/100ms, 100/s]', [100, 6000, 360_000, 8_640_000]],
    ['limit: 100/m, cost: 3', [33, 33, 1980, 47_520]],
    ['limit: 5, algorithm: concurrency', [null, null, null, null]],
    ['limit: 100/m, whenFull: shadow', [null, null, null, null]],
    ['limit: 100/day, algorithm: fixed-window, zone: Europe/Berlin', [200, 200, 200, 300]],
  ])('%s admits at most %j calls in a second, a minute, an hour and a day', async (options, most) => {
    const { rules } = await bound(`rules: [{ id: one, ${options} }]`)
    expect(Object.values(rules[0]!.oneCaller)).toEqual(most)
  })

  it('all rules together are bounded by those that every call meets, or by those of each kind of call', async () => {
    const split =
      'rules:\n  - { id: reads, match: { method: GET }, limit: 10/s }\n  - { id: others, match: { method: [POST, PUT, PATCH, DELETE, OPTIONS, PROPFIND] }, limit: 5/s }\n'
    // a method that no rule names
    expect((await bound(split)).together.allCallers.second).toBe(null)
    expect((await bound(`${split}  - { id: all, limit: 8/s }\n`)).together.allCallers.second).toBe(8)
    expect((await bound('rules: [{ id: one, match: { path: /x }, limit: 1/s }]')).together.allCallers.second).toBe(null)
  })

  it.each([
    ['a stricter rule for all callers', '{ id: a, limit: 5/s }, { id: b, by: ip, limit: 10/s }', 'b: shadowed'],
    [
      'a stricter rule of another period',
      '{ id: a, by: ip, limit: 1/s }, { id: b, by: ip, limit: 61/m }',
      'b: shadowed',
    ],
    [
      'two rules together',
      '{ id: a, by: ip, limit: 10/s }, { id: b, by: ip, limit: 20/m }, { id: c, by: ip, limit: 30/m, match: { path: /x } }',
      'c: shadowed',
    ],
    [
      'a rule for more paths',
      '{ id: a, match: { path: /x/** }, limit: 5/s }, { id: b, match: { path: /x/y }, limit: 5/s }',
      'b: shadowed',
    ],
    [
      'a rule for other paths',
      '{ id: a, match: { path: /x }, limit: 5/s }, { id: b, match: { path: /y }, limit: 10/s }',
      '',
    ],
    ['a rule for fewer callers', '{ id: a, by: ip, limit: 5/s }, { id: b, limit: 10/s }', ''],
    ['a rule that counts failures', '{ id: a, limit: 5/s, countWhen: failed }, { id: b, limit: 10/s }', ''],
    [
      'a slower rule with a larger burst',
      '{ id: a, limit: 5/m, algorithm: token-bucket, burst: 50 }, { id: b, limit: 10/s }',
      '',
    ],
    ['another limit of the same rule', '{ id: a, limit: [100/s, 200/100ms] }', 'a: shadowed'],
    ['a list that allows everyone', "{ id: a, by: ip, limit: 5/s, allow: ['0.0.0.0/0', '::/0'] }", 'a: never-matches'],
    [
      'a path that looks like any other',
      '{ id: a, match: { path: /a/* }, by: ip, limit: 100/s }, { id: b, match: { path: /a/x }, by: ip, limit: 5/s }',
      '',
    ],
    [
      'one of two values of a header',
      '{ id: a, match: { header: { x-k: [v, w] } }, by: ip, limit: 100/s }, { id: b, match: { header: { x-k: v } }, by: ip, limit: 5/s }',
      '',
    ],
    [
      'one of two paths and methods',
      '{ id: a, match: { path: [/p, /q], method: [GET, POST] }, by: ip, limit: 100/s }, { id: b, match: { path: /p, method: GET }, by: ip, limit: 5/s }',
      '',
    ],
    [
      'messages beside calls',
      '{ id: a, by: ip, limit: 5/s }, { id: b, match: { websocket: messages }, by: ip, limit: 50/s }, { id: c, match: { websocket: messages, path: /c }, by: ip, limit: 60/s }',
      'c: shadowed',
    ],
    ['a header as the key', '{ id: a, by: header:x-key, limit: 5/s }', 'a: free-key'],
    [
      'plans that cross',
      '{ id: a, by: ip, limit: { by: header:x-plan, values: { free: 100/m, pro: 5000/h }, default: 1/m } }',
      'a: plan-stricter',
    ],
    [
      'plans in order',
      '{ id: a, by: ip, limit: { by: header:x-plan, values: { pro: 200/m, free: 100/m, off: 0/m }, default: 1/m } }',
      '',
    ],
  ])('diana bound names a rule without effect, %s: %s', async (_, list, expected) => {
    const { findings } = await bound(`rules: [${list}]`)
    expect(
      findings
        .filter(({ isFault }) => isFault)
        .map(({ rule, kind }) => `${rule}: ${kind}`)
        .join(),
    ).toBe(expected)
  })
})
