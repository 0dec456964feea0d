import { rmSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { FakeConfigCenter, limitsOf, local, localLimits, startLiveRules } from '@test/sources/config-center'
import { describe, expect, it, vi } from 'vitest'
import type { Source } from '../sources/source.ts'

describe('remote rules', () => {
  it('remote rules replace local ones with the same id, follow them otherwise, and may disable one', async () => {
    const center = new FakeConfigCenter()
    const { live, after } = startLiveRules({ center })
    center.publish(
      'rules:\n  - { id: more, limit: 7/s }\n  - { id: sms, limit: 1/m, enabled: false }\n  - { id: all, limit: 20/s }\n',
    )
    await live.start()
    expect(limitsOf(live)).toEqual({ all: '20/1000 center', sms: 'off 1/60000 center', more: '7/1000 center' })
    expect(live.document.rules.map(({ id }) => id)).toEqual(['all', 'sms', 'more'])
    await after('taken', () => center.publish('{"rules": [{"id": "more", "limit": "8/s"}]}'))
    expect(limitsOf(live)).toEqual({ ...localLimits, more: '8/1000 center' })
  })

  it('remote rules may use the dimensions and the store of the local document', async () => {
    const center = new FakeConfigCenter()
    const text = `identify: { tenant: header:x-tenant }\nstore: { redis: redis://127.0.0.1 }\n${local}`
    const { live } = startLiveRules({ center, text })
    center.publish('rules: [{ id: t, by: tenant, limit: 1/s, count: distributed }]')
    await live.start()
    expect(live.document.rules[2]).toMatchObject({ by: ['tenant'], count: 'distributed', origin: 'center' })
    expect(live.document.store).toEqual({ redis: ['redis://127.0.0.1'], timeoutMs: 400 })
  })

  it('the status of remote rules has their version and the time of their last change', async () => {
    const center = new FakeConfigCenter()
    const { live, after, remoteStatus, localStatus, path, file } = startLiveRules({ center })
    expect(remoteStatus()).toEqual({ name: 'center', role: 'remote', fromSnapshot: false, taken: 0, rejected: 0 })
    const since = Date.now()
    center.publish('rules: [{ id: a, limit: 1/s }]', '7')
    await live.start()
    expect(remoteStatus()).toMatchObject({ version: '7', taken: 1, rejected: 0, trouble: undefined })
    expect(remoteStatus().takenAt).toBeGreaterThanOrEqual(since)
    expect(localStatus()).toMatchObject({ name: path, role: 'local', version: file.version, taken: 1 })
    const [told] = await after('taken', () => center.publish('rules: [{ id: a, limit: 2/s }]', '8'))
    expect(told).toEqual(remoteStatus())
    expect(told).toMatchObject({ version: '8', taken: 2 })
  })

  it('remote rules that come again under another version are not applied again', async () => {
    const center = new FakeConfigCenter()
    const { live, after, onRules, remoteStatus } = startLiveRules({ center })
    center.publish('rules: [{ id: a, limit: 1/s }]', '1')
    await live.start()
    center.publish('rules: [{ id: a, limit: 1/s }]', '2')
    await after('rejected', () => center.publish('', '3'))
    expect(onRules).toHaveBeenCalledTimes(1)
    expect(remoteStatus()).toMatchObject({ version: '2', taken: 1, rejected: 1 })
  })
})

describe('the local file', () => {
  const remoteText = 'rules: [{ id: all, limit: 20/s }]'

  it('a changed local file is applied, and remote rules still win', async () => {
    const center = new FakeConfigCenter()
    const { live, after, write, localStatus } = startLiveRules({ center })
    center.publish(remoteText)
    await live.start()
    const text = 'answer: { status: 429 }\nrules: [{ id: all, limit: 1/s }, { id: new, limit: 2/s }]'
    const [taken] = await after('taken', () => write(text))
    expect(taken).toMatchObject({ role: 'local', taken: 2 })
    expect(limitsOf(live)).toEqual({ all: '20/1000 center', new: '2/1000 file' })
    expect(live.document.answer.status).toBe(429)
    expect(localStatus().trouble).toBeUndefined()
  })

  it.each([
    ['broken', 'rules: [{ id: all'],
    ['empty', ''],
    ['without rules', 'rules: []'],
  ])('an invalid local file (%s) leaves all rules in force', async (_, text) => {
    const center = new FakeConfigCenter()
    const { live, after, write, replace, path, file, localStatus } = startLiveRules({ center })
    center.publish(remoteText)
    await live.start()
    const before = live.document
    await after('rejected', () => replace(text))
    expect(live.document).toBe(before)
    expect(localStatus()).toMatchObject({ version: file.version, taken: 1, rejected: 1 })
    expect(localStatus().trouble).toContain(`${path}:1:`)
    write(local)
    await vi.waitFor(() => expect(localStatus().trouble).toBeUndefined())
    expect(localStatus().taken).toBe(1)
  })

  it('a deleted local file leaves all rules in force', async () => {
    const { live, after, path } = startLiveRules()
    void live.start()
    await after('rejected', () => rmSync(path))
    expect(limitsOf(live)).toEqual(localLimits)
  })

  it('a local file is rejected whole while it conflicts with the remote rules, and applied once it does not', async () => {
    const center = new FakeConfigCenter()
    const text = `identify: { tenant: header:x-tenant }\n${local}`
    const { live, after, write, path } = startLiveRules({ center, text })
    center.publish('rules: [{ id: t, by: tenant, limit: 1/s }]')
    await live.start()
    const before = live.document
    const [source] = await after('rejected', () => write('rules: [{ id: all, limit: 99/s }]'))
    expect(live.document).toBe(before)
    expect(source.trouble).toBe(
      `${path}:1:1: the rules of the config center cannot be used with this document: center:1:22 rule "t": ` +
        'by "tenant" is not a dimension: write account, device, ip, resource, host, method, header:<name>, query:<name>, cookie:<name>, jwt:<name>, client-certificate:<name> or attribute:<name>, or define it under identify',
    )
    await after('rules', () => center.publish('rules: [{ id: t, by: ip, limit: 1/s }]'))
    expect(limitsOf(live)).toEqual({ all: '99/1000 file', t: '1/1000 center' })
    expect(live.sources().map(({ trouble }) => trouble)).toEqual([undefined, undefined])
  })

  it('a changed local file makes a rejected remote document valid', async () => {
    const center = new FakeConfigCenter()
    const { live, after, write, remoteStatus } = startLiveRules({ center })
    center.publish('rules: [{ id: t, by: tenant, limit: 1/s }]', '1')
    await live.start()
    expect(remoteStatus()).toMatchObject({ rejected: 1, taken: 0 })
    await after('rules', () => write(`identify: { tenant: header:x-tenant }\n${local}`))
    expect(limitsOf(live)).toEqual({ ...localLimits, t: '1/1000 center' })
    expect(remoteStatus()).toMatchObject({ version: '1', taken: 1, trouble: undefined })
  })

  it('the local file and the config center may change a name together, in either order', async () => {
    for (const order of ['local first', 'remote first']) {
      const center = new FakeConfigCenter()
      const { live, after, write } = startLiveRules({ center, text: `identify: { tenant: header:x-tenant }\n${local}` })
      center.publish('rules: [{ id: t, by: tenant, limit: 1/s }]')
      await live.start()
      const changes = [
        () => write(`identify: { customer: header:x-tenant }\n${local}`),
        () => center.publish('rules: [{ id: t, by: customer, limit: 1/s }]'),
      ]
      const [first, second] = order === 'local first' ? changes : changes.toReversed()
      await after('rejected', first!)
      await after('rules', second!)
      expect(live.document.rules.at(-1)).toMatchObject({ by: ['customer'] })
    }
  })

  it('a local file cannot change the config center or the store while the process runs', async () => {
    const { live, after, write, replace, path } = startLiveRules({
      text: `store: { redis: redis://127.0.0.1 }\n${local}`,
    })
    void live.start()
    const [source] = await after('rejected', () => write(`store: { redis: redis://127.0.0.2 }\n${local}`))
    const [other] = await after('rejected', () => replace(`store: { redis: redis://127.0.0.1 }\n${local}`))
    expect(other.trouble).toContain('remote is read at the start only')
    expect(source.trouble).toBe(`${path}:1:1: store is read at the start only: leave it as it was, or start Diana anew`)
  })
})

describe('close', () => {
  it('close ends a start that waits for the config center, and all connections', async () => {
    // what earlier tests have left to the disk is not counted
    const open = (): number => process.getActiveResourcesInfo().filter(kind => !kind.startsWith('FSReq')).length
    const before = open()
    const { live } = startLiveRules({ startTimeout: '1m' })
    const started = live.start()
    await live.close()
    await started
    expect(open()).toBe(before)
  })

  it('close stops updates from all sources', async () => {
    const center = new FakeConfigCenter()
    const { live, onRules, write } = startLiveRules({ center })
    center.publish('rules: [{ id: all, limit: 20/s }]')
    await live.start()
    await live.close()
    center.publish('rules: [{ id: all, limit: 30/s }]')
    write('rules: [{ id: all, limit: 40/s }]')
    await turn()
    expect(onRules).toHaveBeenCalledTimes(1)
  })

  it('close does not wait for a source that ignores its signal', async () => {
    const deaf: Source = {
      name: 'deaf',
      async *watch() {
        await new Promise(() => {})
      },
    }
    const { live } = startLiveRules({ center: deaf, startTimeout: '1m' })
    const started = live.start()
    await live.close()
    await started
  })
})
