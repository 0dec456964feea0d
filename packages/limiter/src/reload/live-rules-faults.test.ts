import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { FakeConfigCenter, folder, limitsOf, local, localLimits, startLiveRules } from '@test/sources/config-center'
import { describe, expect, it, vi } from 'vitest'
import { formatMistake } from '../rules/mistake.ts'

describe('a deleted document of the config center', () => {
  const remoteText = 'rules: [{ id: all, limit: 20/s }, { id: more, limit: 7/s }]'
  const remoteLimits = { ...localLimits, all: '20/1000 center', more: '7/1000 center' }

  it('a deleted document of the config center leaves running and new processes with the local rules, and is reported once', async () => {
    const [running, starting] = [new FakeConfigCenter(), new FakeConfigCenter()]
    const { live, after, events, remoteStatus } = startLiveRules({ center: running })
    running.publish(remoteText)
    await live.start()
    expect(limitsOf(live)).toEqual(remoteLimits)
    const [status] = await after('missing', () => running.delete())
    expect(status.trouble).toContain('there is no document, so the local rules are in force')
    expect(status).toMatchObject({ version: undefined, rejected: 0 })
    const missing = vi.fn()
    events.on('missing', missing)
    running.delete()
    const other = startLiveRules({ center: starting })
    starting.delete()
    await other.after('missing', () => other.live.start())
    expect(limitsOf(live)).toEqual(localLimits)
    expect(limitsOf(other.live)).toEqual(localLimits)
    expect(other.remoteStatus().trouble).toBe(remoteStatus().trouble)
    expect(missing).not.toHaveBeenCalled()
  })

  it('a document of the config center that comes back is in force again, even if it is the same', async () => {
    const center = new FakeConfigCenter()
    const { live, after, remoteStatus } = startLiveRules({ center })
    center.publish(remoteText)
    await live.start()
    await after('missing', () => center.delete())
    await after('taken', () => center.publish(remoteText))
    expect(limitsOf(live)).toEqual(remoteLimits)
    expect(remoteStatus().trouble).toBeUndefined()
  })

  it('a deleted document of the config center has no snapshot, so a start without the center uses the local rules', async () => {
    const path = join(folder, 'deleted.json')
    const center = new FakeConfigCenter()
    const { live, after } = startLiveRules({ center, snapshot: path })
    center.publish(remoteText)
    await live.start()
    await after('missing', () => center.delete())
    await live.close()
    expect(() => statSync(path)).toThrow('ENOENT')
  })

  it('a deleted document of the config center ends the rules of its snapshot', async () => {
    const path = join(folder, 'recalled.json')
    writeFileSync(path, JSON.stringify({ source: 'center', version: '1', text: remoteText }), { mode: 0o600 })
    const center = new FakeConfigCenter()
    const { live } = startLiveRules({ center, snapshot: path })
    center.delete()
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    await live.close()
    expect(() => statSync(path)).toThrow('ENOENT')
  })

  it('local rules that conflicted with the remote document are applied once it is deleted', async () => {
    const center = new FakeConfigCenter()
    const { live, after, write } = startLiveRules({ center, text: `identify: { tenant: header:x-tenant }\n${local}` })
    center.publish('rules: [{ id: t, by: tenant, limit: 1/s }]')
    await live.start()
    await after('rejected', () => write('rules: [{ id: all, limit: 99/s }]'))
    await after('missing', () => center.delete())
    expect(limitsOf(live)).toEqual({ all: '99/1000 file' })
  })

  it('a deleted document of the config center stays in force if the local rules alone are invalid', async () => {
    const center = new FakeConfigCenter()
    const { live, after, onRules } = startLiveRules({ center })
    center.publish(remoteText)
    await live.start()
    onRules.mockImplementation(() => {
      throw new Error('no')
    })
    await after('rejected', () => center.delete())
    expect(limitsOf(live)).toEqual(remoteLimits)
  })
})

const bomb = `a: &a [x,x,x,x,x,x,x,x,x,x]\n${[...'bcdefgh'].map((name, i) => `${name}: &${name} [${`*${'abcdefg'[i]},`.repeat(10)}]\n`).join('')}rules: *h\n`

describe('an invalid document of the config center', () => {
  it.each([
    ['empty', '', 'center:1:1: no rules: the document is empty'],
    ['without rules', 'rules: []', 'center:1:8: rules is an empty list'],
    ['null', 'null', 'center:1:1: the document must be a map'],
    ['a list', '[]', 'center:1:1: the document must be a map'],
    ['text', 'out of order', 'center:1:1: the document must be a map'],
    ['not YAML', 'rules: [', 'center:1:9: this is not YAML'],
    ['a page of HTML', '<html><body>502 Bad Gateway</body></html>', 'center:1:1: the document must be a map'],
    ['cut off', '{"rules": [{"id": "all", "limit": "20/s"}, {"id": "sm', 'center:1:54: this is not YAML'],
    [
      'cut off within a rule',
      'rules:\n  - { id: all, limit: 20/s }\n  - id: sms',
      'center:3:5 rule "sms": limit is missing',
    ],
    [
      'wrong in one rule',
      'rules:\n  - { id: all, limit: 20/s }\n  - { id: sms, limit: 5 }',
      'center:3:23 rule "sms": limit 5 has no period',
    ],
    ['of wrong types', 'rules: { all: 20/s }', 'center:1:8: rules must be a list'],
    [
      'with one id twice',
      'rules: [{ id: a, limit: 1/s }, { id: a, limit: 2/s }]',
      'center:1:38 rule "a": id "a" is the id of an earlier rule',
    ],
    [
      'too large',
      `rules: [{ id: a, limit: 1/s }] #${'x'.repeat(4 * 1024 * 1024)}`,
      'center:1:1: the document is larger than 4 MiB',
    ],
    [
      'of too many rules',
      `rules: [${'{ id: a, limit: 1/s },'.repeat(10_001)}]`,
      'center:1:8: this list has 10001 things',
    ],
    [
      'of too many rules in JSON',
      JSON.stringify({ rules: Array(10_001).fill({ id: 'a', limit: '1/s' }) }),
      'center:1:10: this list has 10001 things',
    ],
    ['a bomb of aliases', bomb, 'aliases up to'],
    [
      'about the store',
      'store: { redis: redis://evil }\nrules: [{ id: a, limit: 1/s }]',
      'center:1:1: store has no place here: a remote document carries rules only',
    ],
    [
      'about who callers are',
      'identify: { account: ip }\nrules: [{ id: a, limit: 1/s }]',
      'identify has no place here',
    ],
    ['about proxies', 'trustProxy: 9\nrules: [{ id: a, limit: 1/s }]', 'trustProxy has no place here'],
    [
      'about another center',
      'remote: { http: http://evil }\nrules: [{ id: a, limit: 1/s }]',
      'remote has no place here',
    ],
    ['about plugins', 'plugins: [/tmp/evil.mjs]\nrules: [{ id: a, limit: 1/s }]', 'plugins has no place here'],
    ...['https://evil/{ip}', 'http://169.254.169.254/{ip}', 'function:1', 'redis://evil/{ip}'].map(from => [
      `that connects to ${from}`,
      `rules: [{ id: a, by: ip, limit: { from: '${from}', default: 1/s } }]`,
      `center:1:41 rule "a": limit.from must not be "${from}": a remote document cannot choose where`,
    ]),
    ['by somebody unknown here', 'rules: [{ id: a, by: tenant, limit: 1/s }]', 'by "tenant" is not a dimension'],
    [
      'for a store that is not there',
      'rules: [{ id: a, limit: 1/s, count: distributed }]',
      'distributed needs a store',
    ],
  ])('an invalid document of the config center (%s) leaves all rules in force', async (_, text, trouble) => {
    const center = new FakeConfigCenter()
    const { live, after, onRules, remoteStatus } = startLiveRules({ center })
    center.publish('rules: [{ id: all, limit: 20/s }]', '1')
    await live.start()
    const before = live.document
    const [source, mistakes] = await after('rejected', () => center.publish(text, '2'))
    expect(live.document).toBe(before)
    expect(onRules).toHaveBeenCalledTimes(1)
    expect(remoteStatus()).toEqual(source)
    expect(source).toMatchObject({ name: 'center', version: '1', taken: 1, rejected: 1 })
    expect(source.trouble).toContain(trouble)
    expect(formatMistake(mistakes[0]!)).toContain(trouble)
    await after('taken', () => center.publish('rules: [{ id: all, limit: 30/s }]', '3'))
    expect(remoteStatus()).toMatchObject({ version: '3', taken: 2, rejected: 1, trouble: undefined })
  })

  it('a document of the config center may read limits of callers from the store, and from addresses of local rules', async () => {
    const center = new FakeConfigCenter()
    const from = 'https://plans.internal/{ip}'
    const text = `rules: [{ id: all, by: ip, limit: { from: '${from}', default: 1/s } }]`
    const { live, after, write } = startLiveRules({ center, text })
    // long enough to be parsed beside the calls
    const padding = `#${' '.repeat(100_000)}`
    center.publish(`rules: [{ id: all, by: ip, limit: { from: '${from}', default: 2/s } }] ${padding}`)
    await live.start()
    expect(limitsOf(live)).toEqual({ all: '2/1000 center' })
    const redis = "rules: [{ id: all, by: ip, limit: { from: 'redis:limits:{ip}', default: 3/s } }]"
    await after('rules', () => center.publish(redis))
    await after('rules', () => write(local))
    expect(limitsOf(live)).toMatchObject({ all: '3/1000 center' })
    await after('rejected', () => center.publish(text))
    await live.close()
  })

  it('an invalid document of the config center at the start leaves the local rules in force', async () => {
    const center = new FakeConfigCenter()
    const { live, remoteStatus } = startLiveRules({ center })
    center.publish('rules: []')
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ taken: 0, rejected: 1 })
    expect(remoteStatus().version).toBeUndefined()
  })

  it('a document of the config center that the limiter refuses counts as invalid', async () => {
    const center = new FakeConfigCenter()
    const { live, onRules, remoteStatus } = startLiveRules({ center })
    onRules.mockImplementationOnce(() => {
      throw new Error('rule "a": this cannot be counted')
    })
    center.publish('rules: [{ id: a, limit: 1/s }]')
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus().trouble).toBe('center:1:1: rule "a": this cannot be counted')
  })

  it('the report of an invalid document has three of many mistakes, and its event has all', async () => {
    const center = new FakeConfigCenter()
    const { live, after } = startLiveRules({ center })
    center.publish('rules: [{ id: a, limit: 1/s }]')
    await live.start()
    const text = `rules:\n${Array.from({ length: 9 }, (_, i) => `  - { id: r${i}, limit: ${i} }\n`).join('')}`
    const [source, mistakes] = await after('rejected', () => center.publish(text))
    expect(source.trouble!.split('\n')).toHaveLength(3)
    expect(mistakes).toHaveLength(9)
  })
})

describe('an unreachable config center', () => {
  it('an unreachable config center at the start leaves the local rules in force, and is used once it is reachable', async () => {
    const center = new FakeConfigCenter()
    const { live, after, remoteStatus } = startLiveRules({ center, startTimeout: '1m' })
    center.fail('connection refused')
    await live.start()
    expect(limitsOf(live)).toEqual(localLimits)
    expect(remoteStatus()).toMatchObject({ trouble: 'center: connection refused', taken: 0, rejected: 0 })
    await after('taken', () => center.publish('rules: [{ id: all, limit: 20/s }]'))
    expect(limitsOf(live)).toEqual({ ...localLimits, all: '20/1000 center' })
    expect(remoteStatus().trouble).toBeUndefined()
  })

  it('a silent config center delays the start no longer than the timeout', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const { live } = startLiveRules({ startTimeout: '2s' })
    let hasStarted = false
    const started = live.start().then(() => {
      hasStarted = true
    })
    await vi.advanceTimersByTimeAsync(1999)
    expect(hasStarted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await started
    expect(limitsOf(live)).toEqual(localLimits)
  })

  it('a config center that answers ends the wait, also with a timeout longer than any timer', async () => {
    const center = new FakeConfigCenter()
    const { live } = startLiveRules({ center, startTimeout: '366d' })
    let hasStarted = false
    const started = live.start().then(() => {
      hasStarted = true
    })
    await turn()
    expect(hasStarted).toBe(false)
    center.publish('rules: [{ id: all, limit: 20/s }]')
    await started
    expect(limitsOf(live).all).toBe('20/1000 center')
  })

  it('a config center that becomes unreachable leaves its last good rules in force, and its return is reported', async () => {
    const center = new FakeConfigCenter()
    const { live, after, onRules, remoteStatus } = startLiveRules({ center })
    center.publish('rules: [{ id: all, limit: 20/s }]', '1')
    await live.start()
    const [failed] = await after('failure', () => center.fail('went away'))
    expect(failed).toMatchObject({ trouble: 'center: went away', version: '1', taken: 1 })
    expect(limitsOf(live).all).toBe('20/1000 center')
    await after('failure', () => center.fail('still away'))
    center.publish('rules: [{ id: all, limit: 20/s }]', '1')
    await vi.waitFor(() => expect(remoteStatus().trouble).toBeUndefined())
    expect([onRules.mock.calls.length, center.watches]).toEqual([1, 3])
  })
})
