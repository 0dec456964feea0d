import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { demoRules } from '../packages/gateway/src/cli/demo/demo.ts'
import { run } from '../packages/gateway/src/cli/run.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const bad = join(root, 'test/rules/bad')
const scratch = mkdtempSync(join(tmpdir(), 'diana-cli-'))

afterAll(() => rmSync(scratch, { recursive: true }))

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Runs a command in this process. */
async function diana(args: readonly string[], input = ''): Promise<Ended> {
  let [out, err] = ['', '']
  const code = await run(args, {
    input: (async function* () {
      yield Buffer.from(input)
    })(),
    print: line => {
      out += `${line}\n`
    },
    printError: line => {
      err += `${line}\n`
    },
  })
  return { code, out, err }
}

function file(name: string, text: string): string {
  const path = join(scratch, name)
  writeFileSync(path, text)
  return path
}

const oneRule = 'rules:\n  - { id: all, limit: 5/s }\n'

describe('diana', () => {
  test.each([['--help'], ['help'], ['-h']])('diana %s lists the commands', async word => {
    const { code, out, err } = await diana([word])
    expect([code, err]).toEqual([0, ''])
    for (const name of ['start', 'check', 'explain']) expect(out).toMatch(new RegExp(`^  ${name} +\\S`, 'm'))
  })

  test.each(['start', 'check', 'explain'])('diana %s --help prints the usage', async name => {
    const asked = await diana([name, '--help'])
    expect([asked.code, asked.err]).toEqual([0, ''])
    expect(asked.out).toMatch(new RegExp(`^usage: diana ${name} `))
    expect(await diana(['help', name])).toEqual(asked)
  })

  test('diana --version prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'packages/gateway/package.json'), 'utf8'))
    for (const word of ['version', '--version', '-v']) {
      expect(await diana([word])).toEqual({ code: 0, out: `${version}\n`, err: '' })
    }
  })

  test.each([
    [[], 'diana: no command given; try diana help'],
    [['chekc'], 'diana: unknown command "chekc"; did you mean check?'],
    [['help', 'chekc'], 'diana: unknown command "chekc"; did you mean check?'],
    [['strat'], 'diana: unknown command "strat"; did you mean start?'],
    [['frobnicate'], 'diana: unknown command "frobnicate"'],
    [['check'], 'diana check: no rule file given: diana check FILE'],
    [['check', '--jsno', 'a'], 'diana check: unknown option --jsno; did you mean --json?'],
    [['start', '--prot', '1'], 'diana start: unknown option --prot; did you mean --port?'],
    [['start', '--frobnicate'], 'diana start: unknown option --frobnicate'],
    [['explain', demoRules, 'GET'], 'diana explain: a rule file, a method and a path are needed'],
    [['explain', demoRules, 'GET', '/a', '/b'], 'diana explain: a rule file, a method and a path are needed'],
    [['explain', demoRules, 'GET', 'hello'], 'diana explain: "hello" is not a path; it must look like /orders/1'],
    [
      ['explain', demoRules, 'GET', '/', '--ip', '1.2'],
      'diana explain: --ip must be an address such as 203.0.113.9, not "1.2"',
    ],
    [['explain', demoRules, 'GET', '/', '-H', 'a'], 'diana explain: "a" is not a header; write -H \'name: value\''],
    [['start', 'now'], 'diana start: unexpected argument "now"'],
    [['start', '--port', '65536'], 'diana start: --port must be a number from 0 to 65535, not "65536"'],
    [['start', '--port', '80a'], 'diana start: --port must be a number from 0 to 65535, not "80a"'],
    [['start', '--workers', '0'], 'diana start: --workers must be a number from 1 to 64, not "0"'],
    [['start', '--workers', 'x'], 'diana start: --workers must be a number from 1 to 64, not "x"'],
    [['start', '--upstream', 'http://a'], 'diana start: --upstream needs rules: add --config FILE'],
  ])('diana refuses the arguments %j with a usage error', async (args, complaint) => {
    const { code, out, err } = await diana(args)
    expect([code, out]).toEqual([2, ''])
    const [line, usage, ...more] = err.split('\n')
    expect([line, more]).toEqual([complaint, ['']])
    expect(usage).toMatch(/^usage: diana /)
  })
})

describe('diana check', () => {
  test("diana check finds nothing wrong with the demo's rules", async () => {
    expect(await diana(['check', demoRules])).toEqual({ code: 0, out: `${demoRules}: ok, 8 rules\n`, err: '' })
  })

  const badFiles = readdirSync(bad)

  test('the tests have many bad files for diana check', () => {
    expect(badFiles.length).toBeGreaterThanOrEqual(25)
  })

  test.each(badFiles)('diana check reports %s in one line with the position of the mistake', async name => {
    const path = join(bad, name)
    const [, place] = /^# expect (\d+:\d+) /.exec(readFileSync(path, 'utf8'))!
    const { code, out, err } = await diana(['check', path])
    expect([code, err]).toEqual([1, ''])
    expect(out.split('\n')).toHaveLength(2)
    expect(out).toMatch(new RegExp(`:${place}(: | rule ".*": )\\S`))
    expect(out.startsWith(`${path}:`)).toBe(true)
  })

  test('diana check validates the gateway section, with the position of each mistake', async () => {
    const path = file(
      'gateway.yaml',
      [
        'rules: [{ id: all, limit: 5/s }]',
        'gateway:',
        '  timeouts: { conect: 5s }',
        '  limits: { body: 10MB }',
        '  filters:',
        '    - { use: hmac-signature, secrets: { a: env:A }, windw: 5m }',
        '    - { use: api-key, keys: [{ name: shop, sha256: abc }] }',
        '  routes:',
        '    - { path: /a, to: 127.0.0.1:3000 }',
        '    - { path: /a/, to: http://b }',
        '    - { path: /b, host: "http://b", to: [] }',
      ].join('\n'),
    )
    const { code, out } = await diana(['check', path])
    expect(code).toBe(1)
    const lines = out.replaceAll(`${path}:`, '').trimEnd().split('\n')
    expect(lines).toEqual([
      '3:15: gateway.timeouts.conect is not a known option: did you mean connect?',
      '4:19: gateway.limits.body must be a size, a whole number with a unit: 512B, 16KiB, 10MiB or 1GiB',
      '6:53: gateway.filters[0].windw is not a known option: did you mean window?',
      '7:52: gateway.filters[1].keys[0].sha256 must be the SHA-256 of the key, 64 hexadecimal digits',
      '9:23: gateway.routes[0].to is not the address of a service: write one such as http://127.0.0.1:3000 or unix:/run/app.sock',
      '11:25: gateway.routes[2].host "http://b" must be the host alone, without scheme and path: api.example.com',
      '11:41: gateway.routes[2].to is an empty list: put something in it',
    ])
  })

  test('diana check reads several files and standard input, and exits with 1 if one is bad', async () => {
    const good = file('good.yaml', oneRule)
    const { code, out } = await diana(['check', good, '-', good], 'rules:\n  - { id: all, limit: 5/x }\n')
    expect(code).toBe(1)
    const lines = out.split('\n')
    expect([lines[0], lines[2], lines[3]]).toEqual([`${good}: ok, 1 rule`, `${good}: ok, 1 rule`, ''])
    expect(lines[1]).toMatch(/^stdin:2:23 rule "all": /)
    expect((await diana(['check', '-'], oneRule)).out).toBe('stdin: ok, 1 rule\n')
  })

  test('diana check names a file that it cannot read, and reads the others', async () => {
    const good = file('good.yaml', oneRule)
    expect(await diana(['check', join(scratch, 'none.yaml'), scratch, good])).toEqual({
      code: 1,
      out: `${good}: ok, 1 rule\n`,
      err:
        `diana check: ${join(scratch, 'none.yaml')} cannot be read (ENOENT): check the path\n` +
        `diana check: ${scratch} cannot be read (EISDIR): check the path\n`,
    })
  })

  test('--json prints the same for a program', async () => {
    const wrong = file('wrong.yaml', 'rules:\n  - { id: all, limit: 5/x }\n')
    const { code, out } = await diana(['check', '--json', wrong, demoRules])
    expect(code).toBe(1)
    expect(JSON.parse(out)).toEqual([
      {
        file: wrong,
        ok: false,
        mistakes: [{ file: wrong, line: 2, column: 23, rule: 'all', message: expect.any(String) }],
      },
      { file: demoRules, ok: true, rules: 8 },
    ])
  })
})

describe('diana explain', () => {
  test('diana explain names rules, keys and numbers', async () => {
    const args = ['explain', demoRules, 'get', '//hello?x=1', '-H', 'X-Account-Id: ann', '--ip', '203.0.113.9']
    const { code, out, err } = await diana(args)
    expect([code, err]).toEqual([0, ''])
    expect(out).toBe(`GET /hello from 203.0.113.9

rule "whole-system" (sliding-window)
  key: all calls together
  limit 1000/s: 1000 left, would pass
rule "per-account" (token-bucket)
  key: account=ann
  limit 10/s, burst 200: 200 left, would pass
rule "per-device" (sliding-window)
  key: device: absent, counted by address 203.0.113.9
  limit 50/s: 50 left, would pass
rule "hello" (sliding-window)
  key: account=ann
  limit 5/10s: 5 left, would pass

rules that do not match:
  "orders-written": its method is POST, PUT, PATCH, DELETE, not GET
  "sms": its method is POST, not GET
  "orders-read": its path is /orders/**, not /hello
  "reports": its path is /reports, not /hello

verdict: the call would pass
`)
  })

  test('diana explain reports a denied caller, and the address from Forwarded', async () => {
    const rules = file(
      'denied.yaml',
      `
trustProxy: 1
forwardedBy: forwarded
deny: { account: mallory }
rules:
  - { id: login, by: ip, limit: 5/s, deny: 203.0.113.0/24 }
`,
    )
    const explain = async (header: string) =>
      (await diana(['explain', rules, 'GET', '/', '-H', header])).out.split('\n')
    expect(await explain('forwarded: for=203.0.113.9')).toEqual([
      'GET / from 203.0.113.9',
      '',
      'the caller is on the deny list of rule "login": every call that this rule is about is refused with status 403, whatever was counted',
      ...['', 'verdict: rule "login" would refuse the call with status 403', ''],
    ])
    const json = await diana(['explain', rules, 'GET', '/', '-H', 'forwarded: for=203.0.113.9', '--json'])
    expect(JSON.parse(json.out).verdict).toMatchObject({ allowed: false, rule: 'login', reason: 'denied' })
    expect(await explain('forwarded: for="[2001:db8::9]:80"')).toContain('  key: ip=2001:db8::/64')
  })

  test('diana explain says that a caller is on an allow list, and what that means', async () => {
    const rules = file(
      'allowed.yaml',
      `
allow: 10.0.0.0/8
rules:
  - { id: login, by: ip, limit: 5/s, allow: 192.0.2.7 }
  - { id: all, limit: 9/s }
`,
    )
    const explain = async (ip: string, ...more: string[]) =>
      (await diana(['explain', rules, 'GET', '/', '--ip', ip, ...more])).out
    expect(await explain('10.1.2.3')).toBe(`GET / from 10.1.2.3

the caller is on the allow list: every call passes, and no rule counts it

verdict: the call would pass
`)
    expect(await explain('192.0.2.7')).toContain(
      'the caller is on the allow list of rule "login": this rule neither counts nor refuses the call, other rules do\nrule "all"',
    )
    expect(JSON.parse(await explain('10.1.2.3', '--json')).caller).toMatchObject([{ is: 'allowed' }])
  })

  test('diana explain says how a value is counted if it differs from the original', async () => {
    const rules = file(
      'words.yaml',
      `
trustProxy: 1
identify: { account: [header:x-account-id] }
rules:
  - { id: a, by: [account, ip, header:x-none, resource], limit: 7, algorithm: concurrency }
  - { id: b, match: { host: other.test }, limit: 1/s }
  - { id: c, by: header:x-odd, limit: 3/90s, whenFull: shadow }
`,
    )
    const long = 'x'.repeat(500)
    const headers = [`x-account-id: ${long}`, 'x-odd: \u001b[31m', 'x-forwarded-for: 2001:db8::1', 'host: it.test']
    const { out } = await diana(['explain', rules, 'POST', '/a', ...headers.flatMap(line => ['-H', line])])
    expect(out.replace(/digest \S{43};/, 'digest …;')).toBe(`POST /a from 2001:db8::1

rule "a" (concurrency)
  key: account: a long value, counted by its digest …; ip=2001:db8::/64; header:x-none: absent, counted with all others that lack it; resource=/a
  limit 7 at a time: 7 left, would pass
rule "c" (sliding-window)
  key: header:x-odd="\\u001b[31m"
  limit 3/90s: 3 left, would pass

rules that do not match:
  "b": its host is other.test, not it.test

verdict: the call would pass
`)
  })

  test('diana explain says when no rule matches the call', async () => {
    const rules = file('few.yaml', 'rules:\n  - { id: a, match: { path: /a }, limit: 1/s }\n')
    const { out } = await diana(['explain', rules, 'GET', '/b'])
    const why = 'rules that do not match:\n  "a": its path is /a, not /b\n'
    expect(out).toBe(`GET /b from 127.0.0.1\n\nno rule matches this call\n\n${why}\nverdict: the call would pass\n`)
  })

  test('--json prints the same for a program', async () => {
    const args = ['explain', demoRules, 'POST', '/sms', '-H', 'x-account-id: ann', '-H', 'x-device-id: d1', '--json']
    const { code, out } = await diana(args)
    expect(code).toBe(0)
    const { call, rules, verdict } = JSON.parse(out)
    expect(call).toMatchObject({ method: 'POST', path: '/sms', ip: '127.0.0.1' })
    expect(verdict).toEqual({ allowed: true, retryAfterMs: 0 })
    expect(rules.map(({ rule }: { rule: string }) => rule)).toEqual([
      'whole-system',
      'per-account',
      'per-device',
      'sms',
    ])
    expect(rules[3]).toMatchObject({
      algorithm: 'sliding-window',
      key: { account: { countedBy: 'value', value: 'ann' } },
      decisions: [
        { rule: 'sms', limit: 1, periodMs: 60_000, remaining: 1, allowed: true },
        { rule: 'sms', limit: 10, periodMs: 86_400_000, remaining: 10, allowed: true },
      ],
    })
  })

  test('diana explain exits with 1 and lists every mistake of bad rules', async () => {
    const rules = file('two.yaml', 'rules:\n  - { id: a, limit: 1/x }\n  - { id: b, limit: 1/y }\n')
    const { code, out, err } = await diana(['explain', rules, 'GET', '/'])
    expect([code, out]).toEqual([1, ''])
    const lines = err.split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(`${rules}:2:21 rule "a": `)
    expect(lines[1]).toMatch(`${rules}:3:21 rule "b": `)
  })
})

describe('diana explain of rules that do not match', () => {
  const rules = `
rules:
  - { id: off, enabled: false, limit: 1/s }
  - { id: named, match: none, limit: 1/s }
  - { id: posts, match: { method: [POST, PUT] }, limit: 1/s }
  - { id: host, match: { host: api.test }, limit: 1/s }
  - { id: plan, match: { header: { x-plan: [gold, silver] } }, limit: 1/s }
  - { id: inside, allow: 127.0.0.0/8, limit: 1/s }
`
  const reasons = {
    off: 'it is off (enabled: false)',
    named: 'only calls that name it are counted (match: none)',
    posts: 'its method is POST, PUT, not GET',
    host: 'its host is api.test, not given',
    plan: 'its headers are x-plan: gold or silver',
    inside: 'it lets this caller off (allow, or missing: skip)',
  }

  test('diana explain says why each rule does not match, and reads rules from standard input', async () => {
    const { code, out, err } = await diana(['explain', '-', 'GET', '/'], rules)
    expect([code, err]).toEqual([0, ''])
    for (const [id, reason] of Object.entries(reasons)) expect(out).toContain(`  "${id}": ${reason}\n`)
    const json = await diana(['explain', '-', 'GET', '/', '--json'], rules)
    expect(JSON.parse(json.out).misses).toEqual(Object.entries(reasons).map(([rule, reason]) => ({ rule, reason })))
  })

  test('diana explain decides by the rules of --rule, and suggests a name for an unknown one', async () => {
    const { out } = await diana(['explain', '-', 'GET', '/', '--rule', 'named'], rules)
    expect(out).toContain('rule "named" (sliding-window)')
    expect(out).not.toContain('"named": ')
    expect(await diana(['explain', '-', 'GET', '/', '--rule', 'nemad'], rules)).toEqual({
      code: 1,
      out: '',
      err: 'diana explain: unknown rule "nemad"; did you mean named?\n',
    })
  })

  test('diana explain knows the options of plugins, and names standard input in mistakes', async () => {
    const plugin = file('half.mjs', "export const dimensions = [{ name: 'half', argument: 'none', read: () => 'x' }]\n")
    const text = 'rules: [{ id: a, by: half, limit: 1/s }]'
    const { out } = await diana(['explain', '-', 'GET', '/', '--plugin', plugin], text)
    expect(out).toContain('key: half=x')
    const { code, err } = await diana(['explain', '-', 'GET', '/'], text)
    expect([code, err]).toEqual([1, expect.stringMatching(/^stdin:1:22 rule "a": by "half" is not a dimension/)])
  })
})

describe('diana check and diana start', () => {
  const route = 'routes: [{ to: http://127.0.0.1:1 }]'
  const gateway = (words: string): string => `${oneRule}gateway:\n  ${route}\n  ${words}\n`
  test.each([
    ['a JWT key that is too short', `jwt: { key: short }\nrules:\n  - { id: a, by: jwt:sub, limit: 1/s }\n`, 'key'],
    [
      'a JWT key in a variable that is not set',
      `jwt: { key: env:DIANA_NO_KEY }\nrules: [{ id: a, by: jwt:sub, limit: 1/s }]\n`,
      'DIANA_NO_KEY',
    ],
    ['a store in a variable that is not set', `store: { redis: env:DIANA_NO_URL }\n${oneRule}`, 'DIANA_NO_URL'],
    ['a filter module that is not there', gateway('filters: [./none.mjs]'), 'cannot be loaded'],
    ['TLS files that are not there', gateway('tls: { cert: none.pem, key: none.key }'), 'cannot be read'],
    ['an admin API that everybody can reach', gateway('admin: { host: 0.0.0.0 }'), 'token'],
    ['a plugin that is not there', `plugins: [./none.mjs]\n${oneRule}`, 'none.mjs'],
    [
      'a limit that cannot be read',
      'rules: [{ id: a, limit: 3/M }]',
      'did you mean 3/m, for minutes, or 3/month, for months?',
    ],
  ])('diana check and diana start refuse %s with the same message', async (_title, text, what) => {
    const config = file('unusable.yaml', text)
    const checked = await diana(['check', config])
    const started = await diana(['start', '--config', config, '--upstream', 'http://127.0.0.1:1', '--port', '0'])
    expect([checked.code, started.code]).toEqual([1, 1])
    expect(checked.out).toContain(what)
    expect(started.err).toContain(what)
    // the same sentence, after the place that check names
    const said = checked.out.trim().replace(/^\S+:\d+:\d+:? /, '')
    expect(started.err.replaceAll('\n', ' ')).toContain(said)
  })
})

describe('diana start', () => {
  test.each([
    ['a rule file that is not there', { config: 'none.yaml' }, /^none\.yaml: cannot be read \(ENOENT\)/],
    ['bad rules', { config: join(bad, 'limit-unit.yaml') }, /limit-unit\.yaml:\d+:\d+ rule "/],
    ['an upstream that is no URL', { upstream: 'nowhere' }, /^diana start: --upstream must be a URL such as /],
    ['an upstream that is not HTTP', { upstream: 'ftp://a' }, /^diana start: --upstream must be a URL such as /],
    [
      'an upstream that is a Unix socket without a whole path',
      { upstream: 'unix:app.sock' },
      /^diana start: the upstream "unix:app\.sock" must name a socket by its whole path/,
    ],
    [
      'an address of another machine',
      { host: '192.0.2.1' },
      /^diana start: this machine has no address 192\.0\.2\.1: /,
    ],
  ])('diana start refuses %s in one sentence', async (_, changed, sentence) => {
    const options = { config: demoRules, upstream: 'http://127.0.0.1:1', port: '0', ...changed }
    const { code, out, err } = await diana(['start', ...Object.entries(options).flatMap(([k, v]) => [`--${k}`, v])])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(sentence)
    expect(err.split('\n')).toHaveLength(2)
  })

  test('diana start refuses a file without routes if no service is given', async () => {
    const { code, out, err } = await diana(['start', '--config', demoRules, '--port', '0'])
    expect([code, out]).toEqual([1, ''])
    expect(err).toMatch(/^diana start: no service to protect: add gateway: /)
  })

  test('diana start refuses a taken port in one sentence', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const { code, out, err } = await diana(['start', '--port', `${port}`])
    server.close()
    expect([code, out]).toEqual([1, ''])
    expect(err).toBe(`diana start: port ${port} of 127.0.0.1 is in use: choose another one with --port N\n`)
  })
})

describe('the diana program', () => {
  const main = join(root, 'packages/gateway/dist/cli/main.js')
  const children: ChildProcess[] = []
  const servers: Server[] = []

  beforeAll(() => {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b'], { cwd: root, stdio: 'pipe' })
  })

  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL')
    for (const server of servers.splice(0)) server.closeAllConnections()
  })

  interface Running {
    readonly child: ChildProcess
    readonly ended: Promise<Ended>
    out(): string
  }

  function launch(args: readonly string[]): Running {
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', text => {
      out += text
    })
    child.stderr.setEncoding('utf8').on('data', text => {
      err += text
    })
    const ended = once(child, 'close').then(([code]) => ({ code, out, err }))
    return { child, ended, out: () => out }
  }

  async function launchDemo(): Promise<{ running: Running; address: string }> {
    const running = launch(['start', '--port', '0'])
    await expect.poll(running.out, { timeout: 40_000 }).toContain('x-account-id: bob')
    return { running, address: /listens on (\S+)/.exec(running.out())![1]! }
  }

  /** A gateway before a service whose calls end when told to. */
  async function launchSlow(): Promise<{ running: Running; address: string; pending: ServerResponse[] }> {
    const pending: ServerResponse[] = []
    const server = createServer((_request, response) => pending.push(response)).listen(0, '127.0.0.1')
    servers.push(server.unref())
    await once(server, 'listening')
    const upstream = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const running = launch(['start', '--config', file('slow.yaml', oneRule), '--upstream', upstream, '--port', '0'])
    await expect.poll(running.out, { timeout: 40_000 }).toContain('listens on')
    return { running, address: /listens on (\S+)/.exec(running.out())![1]!, pending }
  }

  async function listens(address: string): Promise<boolean> {
    const socket = connect(Number(new URL(address).port), '127.0.0.1')
    const isOpen = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return isOpen
  }

  test('the program starts the demo, prints what to try, and stops at a signal', async () => {
    const { running, address } = await launchDemo()
    expect(running.out()).toContain(`'${address}/hello?[1-7]'`)
    const call = async (account: string): Promise<number> => {
      return (await fetch(`${address}/hello`, { headers: { 'x-account-id': account } })).status
    }
    const statuses: number[] = []
    for (let i = 0; i < 7; i++) statuses.push(await call('ann'))
    expect(statuses).toEqual([200, 200, 200, 200, 200, 503, 503])
    expect(await call('bob')).toBe(200)
    running.child.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0, err: '' })
  })

  test('the diana program lets calls under way finish before it stops', async () => {
    const { running, address, pending } = await launchSlow()
    const answer = fetch(address)
    await expect.poll(() => pending.length).toBe(1)
    running.child.kill('SIGINT')
    await expect.poll(() => listens(address), { timeout: 40_000 }).toBe(false)
    pending[0]!.end('finished')
    expect(await (await answer).text()).toBe('finished')
    expect((await running.ended).code).toBe(0)
  })

  test('the diana program stops at once at the second signal', async () => {
    const { running, address, pending } = await launchSlow()
    const answer = fetch(address).catch(() => 'cut off')
    await expect.poll(() => pending.length).toBe(1)
    running.child.kill('SIGTERM')
    await expect.poll(() => listens(address), { timeout: 40_000 }).toBe(false)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(1)
    expect(await answer).toBe('cut off')
  })

  test('the program survives a closed standard output', async () => {
    const { child, ended } = launch(['explain', demoRules, 'GET', '/hello'])
    child.stdout!.destroy()
    expect((await ended).err).toBe('')
  })

  test('the diana program ends with the code of its command', async () => {
    const wrong = relative(process.cwd(), join(bad, 'limit-unit.yaml'))
    const results = await Promise.all(
      [['check', demoRules], ['check', wrong], ['chekc']].map(args => launch(args).ended),
    )
    expect(results.map(({ code }) => code)).toEqual([0, 1, 2])
    expect(results[1]!.out.startsWith(`${wrong}:`)).toBe(true)
  })
})
