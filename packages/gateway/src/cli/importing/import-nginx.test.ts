import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'diana-limiter'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parse } from 'yaml'
import { importCommand } from '../import.ts'
import { importNginx } from './import-nginx.ts'

const zones = `
limit_req_zone $binary_remote_addr zone=each:10m rate=2r/s;   # by address
limit_req_zone $http_x_api_key zone=keys:10m rate=60r/m;
limit_conn_zone $binary_remote_addr zone=open:10m;
`
const rulesOf = (text: string) => importNginx(text).rules

describe('limits of nginx', () => {
  it.each([
    ['limit_req zone=each;', { by: 'ip', limit: '2/s', algorithm: 'leaky-bucket' }],
    ['limit_req zone=each burst=2 nodelay;', { by: 'ip', limit: '2/s', algorithm: 'leaky-bucket', burst: 2 }],
    ['limit_req zone=each burst=2;', { by: 'ip', limit: '2/s', algorithm: 'leaky-bucket', burst: 2, whenFull: 'wait' }],
    [
      'limit_req zone=each burst=2 delay=1;',
      { by: 'ip', limit: '2/s', algorithm: 'leaky-bucket', burst: 2, delay: 1, whenFull: 'wait' },
    ],
    ['limit_req zone=keys;', { by: 'header:x-api-key', missing: 'skip', limit: '60/m', algorithm: 'leaky-bucket' }],
    ['limit_conn open 2;', { by: 'ip', limit: 2, algorithm: 'concurrency' }],
    [
      'limit_req zone=each; limit_req_status 429;',
      { by: 'ip', limit: '2/s', algorithm: 'leaky-bucket', answer: { status: 429 } },
    ],
    [
      'limit_req zone=each burst=2; limit_req_dry_run on;',
      { by: 'ip', limit: '2/s', algorithm: 'leaky-bucket', burst: 2, whenFull: 'shadow' },
    ],
  ])('%s is a rule of all calls', async (directives, rule) => {
    const { rules, warnings } = importNginx(`http { ${zones} server { server_name shop.example; ${directives} } }`)
    expect(rules).toEqual([{ id: expect.any(String), ...rule }])
    expect(warnings).toEqual([])
    const limiter = await createLimiter({ rules: rules as never })
    onTestFinished(() => limiter.close())
    expect(limiter.rules).toHaveLength(1)
  })

  it('locations are paths, and limits of their own replace those above', () => {
    const text = `http { ${zones}
      limit_req zone=each;
      server {
        location / { proxy_pass http://app; }
        location = /login { limit_req zone=keys; }
        location /api { limit_conn open 5; }
      }
    }`
    const { rules, warnings } = importNginx(text)
    expect(rules).toMatchObject([
      { id: 'each', by: 'ip' },
      { id: 'keys', match: { path: ['/login'] } },
      { id: 'open', match: { path: ['/api', '/api/**'] } },
    ])
    expect(warnings).toEqual(['line 6: the rule of each also counts /login, which this limit does not count there'])
  })

  it('servers beside each other are hosts', () => {
    const server = (name: string) => `server { server_name ${name}; limit_req zone=each; }`
    const { rules, warnings } = importNginx(`http { ${zones} ${server('a.example')} ${server('*.b.example')} }`)
    expect(rules).toMatchObject([
      { match: { host: ['a.example'] } },
      { id: 'each-2', match: { host: ['*.b.example'] } },
    ])
    expect(warnings).toEqual(['zone each is used in 2 ways, which are 2 rules with a count each'])
  })

  it('a file with nothing but a location’s directives is read, too', () => {
    expect(rulesOf(`${zones} limit_req zone=each;`)).toMatchObject([{ id: 'each', limit: '2/s' }])
  })

  it.each([
    ['limit_req zone=other;', 'the zone other is not in this file'],
    ['limit_req_zone $uri$args zone=odd:1m rate=1r/s; limit_req zone=odd;', 'the key $uri$args is left out'],
    ['limit_req_zone $host zone=odd:1m rate=1r/h; limit_req zone=odd;', 'the rate 1r/h is not known'],
    ['include limits.conf;', 'include limits.conf is not read'],
    ['location ~ \\.php$ { limit_req zone=each; }', 'location ~ \\.php$ is left out'],
  ])('%s is a warning', (directive, warning) => {
    const { rules, warnings } = importNginx(`${zones} server { ${directive} }`)
    expect(rules).toEqual([])
    expect(warnings).toEqual([expect.stringContaining(warning)])
  })

  it.each([
    ['server {', 'line 1: a block has no end'],
    ['}', 'line 1: } is not expected here'],
    ['a "b;', 'line 1: a quote has no end'],
    ['a\n\nb', 'line 1: "a" has no semicolon'],
    ['{'.repeat(40), 'nested'],
  ])('%j is an error that names the line', (text, message) => {
    expect(() => importNginx(text)).toThrow(message)
  })

  it('quotes, comments and braces in words are read as nginx reads them', () => {
    const text = `${zones} # limit_req zone=none; {
      log_format main '{"a": "b;"}'; add_header X "}"; set $a "\${b}"; limit_req "zone=each";`
    expect(rulesOf(text)).toHaveLength(1)
  })

  it('any text ends in rules or an error with a sentence', () => {
    const word = fc.constantFrom(
      '{',
      '}',
      ';',
      'server',
      'location',
      '/a',
      'limit_req',
      'zone=each',
      '"',
      "'",
      '#',
      '\n',
      zones,
    )
    fc.assert(
      fc.property(fc.array(word, { maxLength: 40 }), words => {
        try {
          expect(importNginx(words.join(' ')).rules.every(({ id }) => id !== '')).toBe(true)
        } catch (error) {
          expect((error as Error).message).toMatch(/^line \d+: \S/)
        }
      }),
    )
  })

  it('diana import nginx prints a rule file, warnings, and mistakes with file and line', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'diana-import-'))
    onTestFinished(() => rm(folder, { recursive: true }))
    const file = join(folder, 'nginx.conf')
    const [printed, errors]: [string[], string[]] = [[], []]
    const terminal = { print: (line: string) => printed.push(line), printError: (line: string) => errors.push(line) }
    const run = () => importCommand.run({ words: ['nginx', file], options: {} }, terminal as never)
    await writeFile(file, `${zones} limit_req zone=each; limit_conn missing 2;`)
    expect(await run()).toBe(0)
    expect(parse(printed.join('\n'))).toEqual({
      rules: [{ id: 'each', by: 'ip', limit: '2/s', algorithm: 'leaky-bucket' }],
    })
    expect(errors).toEqual([`warning: ${file}: line 5: the zone missing is not in this file`])
    await writeFile(file, 'server {')
    await expect(run()).rejects.toThrow(`${file}: line 1: a block has no end`)
  })
})
