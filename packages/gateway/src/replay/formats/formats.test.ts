import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { chooseReader, type FormatChoice } from './choose.ts'
import { type LogEntry, newEntry } from './format.ts'

const linesOf = (name: string): string[] =>
  readFileSync(new URL(`./fixtures/${name}`, import.meta.url), 'latin1')
    .split('\n')
    .filter(line => line !== '')

function readAll(name: string, choice: FormatChoice = {}) {
  const lines = linesOf(name)
  const reader = chooseReader(choice, lines, name)
  const entries: LogEntry[] = []
  let bad = 0
  for (const line of lines) {
    const entry = newEntry()
    const isRead = reader.read(line, entry)
    if (isRead === true) entries.push(entry)
    else if (isRead === false) bad++
  }
  return { reader, entries, bad }
}

const second = 1_000_000
const nginxCustom =
  '$msec|$remote_addr|$request_method|$request_uri|$status|$request_time|$host|$http_x_account_id|$cookie_uid'
const apacheCustom = '%{usec}t %a %m %U%q %>s %D \\"%{X-Account-Id}i\\" %v'
const fields = 'time=ts,ip=client.addr,method=req.verb,path=req.url,status=code,duration.ms=took,attribute:account=user'

/** The log, its format, how exactly it says moments, which moment of a request, and how many requests it has. */
const logs: readonly [
  file: string,
  format: string,
  tickUs: number,
  time: string,
  requests: number,
  choice?: FormatChoice,
][] = [
  ['nginx-combined.log', 'combined', second, 'end', 6],
  ['nginx-vhost.log', 'vhost combined', second, 'start', 6],
  ['nginx-timed.log', 'combined with $request_time', second, 'end', 6],
  ['nginx-main.log', 'combined with X-Forwarded-For', second, 'end', 6],
  ['nginx-custom.log', 'nginx', 1000, 'end', 6, { format: nginxCustom }],
  ['apache-common.log', 'common', second, 'end', 6],
  ['apache-combined.log', 'combined', second, 'end', 6],
  ['apache-vhost.log', 'vhost combined', second, 'start', 6],
  ['apache-custom.log', 'apache', 1, 'start', 5, { format: apacheCustom }],
  ['caddy.log', 'caddy', 1000, 'end', 6],
  ['haproxy.log', 'haproxy', 1000, 'start', 6],
  ['envoy.log', 'envoy', 1000, 'start', 2],
  ['envoy-details.log', 'envoy', 1000, 'start', 1],
  ['traefik.log', 'traefik', second, 'start', 2],
  ['traefik-json.log', 'traefik json', 1, 'start', 1],
  ['alb.log', 'alb', 1, 'start', 1],
  ['cloudfront.log', 'cloudfront', second, 'end', 1],
  ['iis.log', 'w3c', second, 'end', 2],
  ['lines.log', 'json by --fields', 1, 'start', 2, { fields }],
  ['diana.log', 'diana', 1000, 'start', 2],
  ['diana-replay.log', 'diana with replay', 1, 'start', 1],
]

describe('formats of logs', () => {
  it.each(logs)(
    '%s is recognized as %s, and each of its requests is read',
    (file, format, tickUs, time, requests, choice) => {
      const { reader, entries, bad } = readAll(file, choice)
      // %U is a path without its escapes: one with a space cannot be read back
      const unreadable = file === 'apache-custom.log' ? 1 : 0
      expect([reader.format, reader.tickUs, reader.time, entries.length, bad]).toEqual([
        format,
        tickUs,
        time,
        requests,
        unreadable,
      ])
      expect(entries[0]!.target.endsWith('/products/1?color=red')).toBe(true)
      expect(entries[0]).toMatchObject({ method: 'GET' })
      expect(entries[0]!.status).toBe(file.startsWith('apache') ? 404 : 200)
      // all were written in the same minute
      for (const { at } of entries) expect(Math.abs(at / second - 1_794_955_735)).toBeLessThan(30)
      for (const { peer } of entries) expect(['127.0.0.1', '203.0.113.9', '10.0.35.28']).toContain(peer)
    },
  )

  it.each(['nginx-combined.log', 'nginx-vhost.log', 'apache-combined.log', 'apache-vhost.log'])(
    '%s: quotes and backslashes in headers and targets are read as they came',
    file => {
      const { entries } = readAll(file)
      expect(entries[0]!.headers?.['user-agent']).toBe('curl "quoted" \\back')
      expect(entries[5]!.target).toBe('/a%22b"c')
    },
  )

  it.each(['nginx-combined.log', 'apache-vhost.log', 'envoy.log', 'alb.log'])(
    '%s: a replay that reads fewer fields leaves those of another one alone',
    file => {
      const { reader, entries } = readAll(file)
      const few = reader.want!(() => false)
      const entry = newEntry()
      few.read(linesOf(file).at(-1)!, entry)
      expect(entry.headers?.['user-agent']).toBeUndefined()
      expect(readAll(file).entries).toEqual(entries)
    },
  )

  it('fields beyond the usual ones are read from custom formats', () => {
    const [nginx] = readAll('nginx-custom.log', { format: nginxCustom }).entries.slice(3)
    expect(nginx).toMatchObject({
      method: 'POST',
      target: '/login',
      headers: { 'x-account-id': 'bob', cookie: 'uid=u1' },
    })
    expect(nginx!.durationUs).toBeGreaterThanOrEqual(0)
    const [apache] = readAll('apache-custom.log', { format: apacheCustom }).entries
    expect(apache).toMatchObject({ headers: { 'x-account-id': 'ann' }, host: 'shop.example', durationUs: 469 })
    const [main] = readAll('nginx-main.log').entries.slice(3)
    expect(main!.headers).toMatchObject({ 'x-forwarded-for': '203.0.113.9, 198.51.100.2' })
    const [json] = readAll('lines.log', { fields }).entries
    expect(json).toMatchObject({ attributes: { account: 'ann' }, durationUs: 12_500 })
  })

  it('Envoy has the address of the connection behind those of other proxies', () => {
    const { entries } = readAll('envoy.log')
    expect(entries[0]).toMatchObject({
      peer: '10.0.35.28',
      headers: { 'x-forwarded-for': '203.0.113.9' },
      host: 'shop.example',
    })
    expect(entries[1]!.headers?.['x-forwarded-for']).toBeUndefined()
  })

  it('the access log of the gateway has what rules read', () => {
    const [entry] = readAll('diana-replay.log').entries
    expect(entry).toMatchObject({
      ...{ at: 1_794_955_729_310_123, turn: 1, durationUs: 12_345, verdict: 'passed' },
      ...{ attributes: { account: 'DFnwpSfIt1Stvbr-3N5cE0' }, headers: { 'x-cost': '3' } },
    })
  })

  it('a log of an unknown format is refused with the formats that are known', () => {
    expect(() => chooseReader({}, ['hello world', 'second line'], 'x.log')).toThrow(
      /x\.log: its format is not recognized; known are .*combined/,
    )
    expect(() => chooseReader({ format: 'combind' }, [''], 'x.log')).toThrow('did you mean combined?')
    expect(() => chooseReader({ format: '$remote_addr$status' }, [''], 'x.log')).toThrow(/cannot be read back/)
    expect(() => chooseReader({ fields: 'when=ts' }, [''], 'x.log')).toThrow(/is not a name that a field can have/)
  })
})
