import { writeFileSync } from 'node:fs'
import { Authority } from '@test/tls/authority'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { run } from './run.ts'

let authority: Authority

beforeAll(() => {
  authority = new Authority()
  authority.issue('good')
  authority.issue('late', { days: -1 })
})
afterAll(() => authority.close())

async function check(gateway: object, ...options: string[]) {
  const file = authority.path('diana.yaml')
  writeFileSync(file, stringify({ rules: [{ id: 'all', limit: '1/s' }], gateway }))
  const [out, err] = [[] as string[], [] as string[]]
  const print = (line: string): void => void out.push(line)
  const printError = (line: string): void => void err.push(line)
  const input = (async function* () {})()
  const code = await run(['check', file, ...options], { input, print, printError })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

const good = { cert: 'good.pem', key: 'good.key' }
const late = { cert: 'late.pem', key: 'late.key' }
const routes = [{ to: 'https://127.0.0.1:1' }]

describe('diana check', () => {
  it('diana check accepts a file with an expired certificate, and warns with its date', async () => {
    const { code, out, err } = await check({ tls: { certificates: [good, late] }, routes })
    expect([code, out]).toEqual([0, expect.stringContaining('ok, 1 rule')])
    expect(err).toMatch(/diana\.yaml: warning: .*late\.pem expired on \d{4}-\d\d-\d\d \(CN=late\): renew it/)
  })

  it.each([
    [
      'limit: 100/h, block: 1m',
      'a block of 1m can end before limit 100/h admits',
      'write block: { first: 1m, factor: 1 }',
    ],
    [
      'limit: 10/15m, algorithm: fixed-window, block: { first: 1m, clear: false }',
      'before limit 10/15m',
      'leave clear: false out',
    ],
    ['limit: [5/s, 100/day], block: 1m', 'before limit 100/day', 'write block: { first: 1m, factor: 1 }'],
    ['limit: 100/h, block: 2h', undefined, undefined],
    ['limit: 100/h, block: { first: 1m }', undefined, undefined],
    ['limit: 100/h, block: manual', undefined, undefined],
    ['limit: 100/h, algorithm: token-bucket, block: 1m', undefined, undefined],
    ['limit: 5, algorithm: concurrency, block: 1m', undefined, undefined],
  ])('diana check of { %s } warns: %s', async (rule, warning, remedy) => {
    const file = authority.path('block.yaml')
    writeFileSync(file, `rules: [{ id: a, by: ip, ${rule} }]`)
    const errors: string[] = []
    const printError = (line: string): void => void errors.push(line)
    expect(await run(['check', file], { input: [] as never, print: () => {}, printError })).toBe(0)
    if (warning === undefined) expect(errors).toEqual([])
    else for (const part of [warning, remedy]) expect(errors.join()).toContain(part)
  })

  it('diana check includes warnings in its JSON', async () => {
    const { out } = await check({ tls: late, routes }, '--json')
    const [result] = JSON.parse(out)
    expect(result).toMatchObject({
      ok: true,
      warnings: expect.arrayContaining([expect.stringContaining('expired on')]),
    })
  })

  it.each([
    [
      'a certificate',
      { tls: { ...good, cert: 'none.pem' }, routes },
      'none.pem cannot be read (ENOENT): check the path',
    ],
    ['a key', { tls: { cert: 'good.pem', key: 'late.key' }, routes }, 'is not that of the certificate'],
    ['an authority of callers', { tls: { ...good, clients: { ca: 'none.pem' } }, routes }, 'none.pem cannot be read'],
    [
      'an authority of a service',
      { routes: [{ to: 'https://127.0.0.1:1', tls: { ca: 'good.pem' } }] },
      'good.pem holds CN=good, which is not the certificate of an authority',
    ],
    ['a half of a pair', { tls: { cert: 'good.pem' }, routes }, 'has a cert and no key: add key'],
    ['two kinds of lists', { tls: { ...good, certificates: [late] }, routes }, 'make it one more of the certificates'],
    [
      'a name that is none',
      { tls: { certificates: [{ ...good, names: ['a b'] }] }, routes },
      'tls.certificates[0].names',
    ],
  ])('diana check refuses a file with %s that cannot be used', async (_, gateway, message) => {
    const { code, out } = await check(gateway)
    expect([code, out]).toEqual([1, expect.stringContaining(message)])
  })
})
