import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Report } from '../replay/report/report.ts'
import { run } from './run.ts'

let folder: string
const file = (name: string): string => join(folder, name)

/** A line of the combined format, `second` seconds after eight o'clock. */
function line(second: number, address = '203.0.113.9', target = '/a'): string {
  const time = new Date(Date.UTC(2026, 10, 16, 8) + second * 1000).toISOString()
  const clf = `${time.slice(8, 10)}/Nov/2026:${time.slice(11, 19)} +0000`
  return `${address} - - [${clf}] "GET ${target} HTTP/1.1" 200 12 "-" "agent"`
}

async function diana(...args: string[]): Promise<{ exitCode: number; out: string; errors: string }> {
  return await dianaWith('', ...args)
}

async function dianaWith(input: string, ...args: string[]): Promise<{ exitCode: number; out: string; errors: string }> {
  const [out, errors]: string[][] = [[], []]
  async function* given(): AsyncGenerator<string> {
    yield input
  }
  const exitCode = await run(['replay', ...args], {
    input: given(),
    print: text => void out!.push(text),
    printError: text => void errors!.push(text),
  })
  return { exitCode, out: out!.join('\n'), errors: errors!.join('\n') }
}

async function reportOf(...args: string[]): Promise<Report> {
  return JSON.parse((await diana(...args, '--json')).out) as Report
}

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'diana-replay-'))
  writeFileSync(file('rules.yaml'), 'rules:\n  - { id: per-ip, by: ip, limit: 5/m, algorithm: fixed-window }\n')
  writeFileSync(file('looser.yaml'), 'rules:\n  - { id: per-ip, by: ip, limit: 8/m, algorithm: fixed-window }\n')
  writeFileSync(file('access.log'), Array.from({ length: 10 }, (_unused, at) => line(at)).join('\n'))
})

afterAll(() => rmSync(folder, { recursive: true }))

describe('diana replay', () => {
  it('diana replay reports what a rule would have refused', async () => {
    const { exitCode, out } = await diana(file('rules.yaml'), file('access.log'))
    expect(exitCode).toBe(0)
    expect(out).toMatch(/per-ip +5\/1m by ip +10 +5 \(50\.0 %\) +1 of 1/)
    expect(out).toContain('203.0.113.9  10 calls  5 refused')
    expect(out).toContain('note: What refused callers would have done is left out')
  })

  it('diana replay reads packed logs, standard input and several logs merged by time', async () => {
    writeFileSync(file('first.log.gz'), gzipSync(Array.from({ length: 5 }, (_unused, at) => line(2 * at)).join('\n')))
    writeFileSync(file('second.log'), Array.from({ length: 5 }, (_unused, at) => line(2 * at + 1)).join('\n'))
    const { log, refused } = await reportOf(file('rules.yaml'), file('first.log.gz'), file('second.log'))
    expect([log.lines, refused]).toEqual([10, { least: 5, most: 5 }])
    const { out } = await dianaWith(readFileSync(file('access.log'), 'utf8'), file('rules.yaml'), '-', '--json')
    expect((JSON.parse(out) as Report).refused).toEqual({ least: 5, most: 5 })
  })

  it('diana replay compares two rule files, and fails on a condition', async () => {
    const { out } = await diana(file('rules.yaml'), file('access.log'), '--against', file('looser.yaml'))
    expect(out).toMatch(/per-ip +2 +→ +5/)
    const failing = await diana(file('rules.yaml'), file('access.log'), '--fail-if', 'refused > 10%')
    expect([failing.exitCode, failing.errors]).toEqual([1, 'diana replay: refused > 10%: up to 50.000 % (5 of 10)'])
    const passing = await diana(
      file('rules.yaml'),
      file('access.log'),
      '--fail-if',
      'per-ip.refused > 5',
      '--fail-if',
      'callers > 1',
    )
    expect([passing.exitCode, passing.errors]).toEqual([0, ''])
    expect((await diana(file('rules.yaml'), file('access.log'), '--fail-if', 'more > 3')).exitCode).toBe(2)
    expect((await diana(file('rules.yaml'), file('access.log'), '--fail-if', 'other.refused > 3')).errors).toContain(
      'there is no rule other',
    )
  })

  it('diana replay says which rules could not be judged, and what to log', async () => {
    writeFileSync(
      file('more.yaml'),
      'rules:\n  - { id: account, by: header:x-account-id, limit: 5/m }\n  - { id: slots, limit: 5, algorithm: concurrency }\n',
    )
    const { out } = await diana(file('more.yaml'), file('access.log'))
    expect(out).toMatch(
      /rule account could not be judged: .*header:x-account-id; add "\$http_x_account_id" to log_format/,
    )
    expect(out).toMatch(/rule slots could not be judged: the log has no duration; add "\$request_time"/)
  })

  it.each([
    ['refused > 0.1%', 'could not judge rule account'],
    ['refused > 1000000', 'could not judge rule account'],
    ['callers > 100%', 'could not judge rule account'],
    ['account.refused > 0', 'could not judge rule account'],
    ['per-ip.refused > 5', undefined],
  ])('--fail-if %j fails if it is about a rule that could not be judged', async (condition, failure) => {
    writeFileSync(
      file('unjudged.yaml'),
      'rules:\n  - { id: account, by: header:x-account-id, limit: 5/m }\n  - { id: per-ip, by: ip, limit: 5/m }\n',
    )
    const { exitCode, errors } = await diana(file('unjudged.yaml'), file('access.log'), '--fail-if', condition)
    expect(exitCode).toBe(failure === undefined ? 0 : 1)
    if (failure !== undefined) expect(errors).toContain(`${condition}: ${failure} (the log has no `)
  })

  it('the remedy for a log of the gateway names the option of the gateway', async () => {
    const time = new Date(Date.UTC(2026, 10, 16, 8)).toISOString()
    const call = { time, address: '203.0.113.9', method: 'GET', path: '/a', status: 503, ms: 1, end: 'answered' }
    writeFileSync(file('diana.log'), `${JSON.stringify({ ...call, bytesIn: 0, verdict: 'refused' })}\n`)
    writeFileSync(file('account.yaml'), 'rules:\n  - { id: account, by: header:x-account-id, limit: 5/m }\n')
    const { exitCode, errors } = await diana(file('account.yaml'), file('diana.log'), '--fail-if', 'refused > 0.1%')
    expect(exitCode).toBe(1)
    expect(errors).toContain('accessLog: { replay: digest }')
    expect(errors).not.toContain('log_format')
  })

  it('unreadable lines are counted and shown', async () => {
    writeFileSync(file('odd.log'), [line(0), 'what is this', line(1), '\u0001\u0002', line(2)].join('\n'))
    const { exitCode, out } = await diana(file('rules.yaml'), file('odd.log'))
    expect(exitCode).toBe(0)
    expect(out).toContain('5 lines, 2 of them unreadable')
    expect(out).toContain('odd.log:2 unreadable: what is this')
    expect(out).toContain('odd.log:4 unreadable: ??')
  })

  it('times that run backwards are put in order; those that are too late are counted', async () => {
    writeFileSync(file('mixed.log'), [3, 1, 2, 0, 5, 4].map(at => line(at)).join('\n'))
    const { log, calls } = await reportOf(file('rules.yaml'), file('mixed.log'))
    expect([calls, log.from, log.notes.join(' ')]).toEqual([
      6,
      '2026-11-16T08:00:00.000Z',
      expect.not.stringContaining('out of order'),
    ])
    const late = [...Array.from({ length: 9000 }, (_unused, at) => line(at)), line(10)]
    writeFileSync(file('late.log'), late.join('\n'))
    expect((await reportOf(file('rules.yaml'), file('late.log'))).log.notes.join(' ')).toMatch(
      /1 lines came out of order by up to/,
    )
  })

  it.each([
    ['newest first', (lines: string[]) => lines.toReversed()],
    ['two days in the wrong order', (lines: string[]) => [...lines.slice(10_000), ...lines.slice(0, 10_000)]],
  ])('a long log that is not in the order of time is refused with a remedy: %s', async (_title, arrange) => {
    writeFileSync(file('odd.log'), arrange(Array.from({ length: 20_000 }, (_unused, at) => line(at))).join('\n'))
    const { exitCode, errors } = await diana(file('rules.yaml'), file('odd.log'))
    expect([exitCode, errors]).toEqual([
      1,
      expect.stringMatching(/odd\.log is not in the order of time: \d+ of \d+ lines/),
    ])
    expect(errors).toContain('tac access.log | diana replay rules.yaml -')
  })

  it('a short log with its newest line first is put in order', async () => {
    const lines = Array.from({ length: 5000 }, (_unused, at) => line(at))
    const [forward, backward] = [file('forward.log'), file('backward.log')]
    writeFileSync(forward, lines.join('\n'))
    writeFileSync(backward, lines.toReversed().join('\n'))
    const [one, other] = [await reportOf(file('rules.yaml'), forward), await reportOf(file('rules.yaml'), backward)]
    expect(other.rules).toEqual(one.rules)
  })

  it('a rule with countWhen is judged narrowly by a log without durations, and the assumption is stated', async () => {
    writeFileSync(file('failed.yaml'), 'rules: [{ id: failures, limit: 20/m, countWhen: failed }]')
    const calls = Array.from({ length: 6000 }, (_unused, at) => ({ at, status: 200 }))
    // thirty failures in one second of each tenth minute, among successes ten a minute
    const some = calls.filter(({ at }) => at % 6 === 0)
    const failures = [0, 600, 1200].flatMap(at => Array.from({ length: 30 }, () => ({ at: at + 3, status: 401 })))
    const sorted = [...some, ...failures].sort((one, two) => one.at - two.at)
    writeFileSync(
      file('failed.log'),
      sorted.map(({ at, status }) => line(at).replace(/ 200 /, ` ${status} `)).join('\n'),
    )
    const report = await reportOf(file('failed.yaml'), file('failed.log'))
    const { least, most } = report.rules[0]!.refused
    expect(least).toBe(30)
    // the failures, and those of 1090 calls that came within a minute after them
    expect(most).toBe(126)
    expect(report.log.notes.join(' ')).toContain('calls are assumed to last up to 1m')
  })

  it.each<[name: string, content: Buffer | undefined, message: RegExp]>([
    ['binary.log', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 0, 0, 1]), /binary\.log is not a log: it is binary data/],
    ['missing.log', undefined, /missing\.log cannot be read \(ENOENT\); check the path/],
    [
      'text.log',
      Buffer.from('hello\nworld\n'),
      /text\.log: its format is not recognized; known are .*The first line is: hello/,
    ],
    [
      'broken.log.gz',
      Buffer.concat([gzipSync('abc').subarray(0, 12), Buffer.alloc(20, 7)]),
      /broken\.log\.gz is damaged/,
    ],
  ])('%s is refused with a clear message', async (name, content, message) => {
    if (content) writeFileSync(file(name), content)
    const { exitCode, errors } = await diana(file('rules.yaml'), file(name))
    expect(exitCode).toBe(1)
    expect(errors).toMatch(message)
  })

  it('a packed log that is cut off is judged as far as it goes', async () => {
    const whole = gzipSync(
      Array.from({ length: 20_000 }, (_unused, at) => line(at, `203.0.113.${(at * 7919) % 250}`, `/${at * 31}`)).join(
        '\n',
      ),
    )
    writeFileSync(file('cut.log.gz'), whole.subarray(0, whole.length - 2000))
    const { exitCode, out } = await diana(file('rules.yaml'), file('cut.log.gz'))
    expect(exitCode).toBe(0)
    expect(out).toMatch(
      /cut\.log\.gz: combined, [\d,]+ lines; .*cut\.log\.gz ends too early: the packed file is cut off/,
    )
  })

  it('mistakes in rules are reported with their line', async () => {
    writeFileSync(file('bad.yaml'), 'rules:\n  - { id: a, limit: many }\n')
    const { exitCode, errors } = await diana(file('bad.yaml'), file('access.log'))
    expect([exitCode, errors]).toEqual([1, expect.stringMatching(/bad\.yaml:2:\d+ .*limit must be/)])
  })

  it('a log without calls in the given time is reported, and wrong use gets the usage', async () => {
    const { exitCode, errors, out } = await diana(
      file('rules.yaml'),
      file('access.log'),
      '--since',
      '2027-01-01T00:00:00Z',
    )
    expect([exitCode, errors]).toEqual([1, 'diana replay: no call of the log is in the given time'])
    expect(out).toContain('No calls to judge.')
    for (const words of [[], [file('rules.yaml')], [file('rules.yaml'), '-', '-']])
      expect((await diana(...words)).exitCode).toBe(2)
    expect((await diana(file('rules.yaml'), file('access.log'), '--since', 'yesterday')).errors).toContain(
      '--since must be a time',
    )
  })

  it('diana replay --suggest names limits that separate abusers, as a rule file in shadow that diana check takes', async () => {
    const lines: string[] = []
    for (let at = 0; at < 600; at++) {
      lines.push(line(at, `198.51.100.${at % 100}`), line(at, '203.0.113.66'), line(at, '203.0.113.66'))
    }
    writeFileSync(file('traffic.log'), lines.join('\n'))
    const { out } = await diana(file('traffic.log'), '--by', 'ip/m', '--suggest-to', file('suggested.yaml'))
    expect(out).toMatch(/rule per-ip by ip: suggested limit 1\/1m/)
    expect(out).toContain('above it: 203.0.113.66, peak 120, 1200 calls')
    expect(out).not.toMatch(/above it: 198/)
    const checked: string[] = []
    const terminal = {
      input: process.stdin,
      print: (text: string) => void checked.push(text),
      printError: (text: string) => void checked.push(text),
    }
    expect(await run(['check', file('suggested.yaml')], terminal)).toBe(0)
    expect(readFileSync(file('suggested.yaml'), 'utf8')).toContain('whenFull: shadow')
  })
})
