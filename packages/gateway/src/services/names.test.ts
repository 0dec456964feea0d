import type { LookupAddress } from 'node:dns'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Endpoint, endpointsOf } from './endpoints.ts'
import { Names } from './names.ts'

const v4 = (...addresses: string[]): LookupAddress[] => addresses.map(address => ({ address, family: 4 }))
const v6 = (...addresses: string[]): LookupAddress[] => addresses.map(address => ({ address, family: 6 }))
const texts = (endpoints: readonly Endpoint[]) => endpoints.map(one => one.map(({ address }) => address).join(' '))

describe('the machines behind a name', () => {
  test.each([
    ['one address', v4('10.0.0.1'), ['10.0.0.1']],
    ['one address of each family, which is one machine', [...v6('::1'), ...v4('127.0.0.1')], ['127.0.0.1 ::1']],
    ['several addresses, in an order of their own', v4('10.0.0.2', '10.0.0.1'), ['10.0.0.1', '10.0.0.2']],
    [
      'several of both families: those of IPv4',
      [...v4('10.0.0.1', '10.0.0.2'), ...v6('::2')],
      ['10.0.0.1', '10.0.0.2'],
    ],
    ['several of IPv6', v6('::3', '::2'), ['::2', '::3']],
    ['the same address twice', v4('10.0.0.1', '10.0.0.1'), ['10.0.0.1']],
    ['no address', [], []],
  ])('the machines behind a name are found for %s', (_, answer, expected) => {
    expect(texts(endpointsOf(answer))).toEqual(expected)
  })

  test('the machines behind a name are at most 256, and the same ones whatever the order of the answer', () => {
    const all = v4(...Array.from({ length: 10_000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`))
    const endpoints = texts(endpointsOf(all))
    expect(endpoints).toHaveLength(256)
    expect(texts(endpointsOf([...all].reverse()))).toEqual(endpoints)
  })
})

describe('host names of services', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('host names are looked up periodically, and only changes are reported', async () => {
    let answer: LookupAddress[] = v4('10.0.0.1')
    let asked = 0
    const names = new Names(async () => {
      asked++
      return answer
    })
    names.intervalMs = 1000
    const seen: string[][] = []
    const stop = names.follow('app.test', endpoints => seen.push(texts(endpoints)))
    await vi.advanceTimersByTimeAsync(5000)
    answer = v4('10.0.0.2', '10.0.0.1')
    await vi.advanceTimersByTimeAsync(1200)
    answer = v4('10.0.0.1', '10.0.0.2')
    await vi.advanceTimersByTimeAsync(3000)
    expect(seen).toEqual([['10.0.0.1'], ['10.0.0.1', '10.0.0.2']])
    expect(asked).toBeGreaterThan(6)
    stop()
    const before = asked
    await vi.advanceTimersByTimeAsync(60_000)
    expect([asked, names.endpointsOf('app.test')]).toEqual([before, []])
  })

  test('host names keep their last good answer while DNS fails or answers nothing', async () => {
    const answers = [() => v4('10.0.0.1'), () => [], () => raise('queryA ETIMEOUT'), () => v4('10.0.0.9')]
    const names = new Names(async () => answers.shift()!())
    names.intervalMs = 1000
    names.follow('app.test', () => {})
    const states: unknown[] = []
    for (let i = 0; i < 4; i++) {
      await vi.advanceTimersByTimeAsync(i === 0 ? 0 : 1100)
      states.push([texts(names.endpointsOf('app.test')), names.classifyError('app.test')])
    }
    expect(states).toEqual([
      [['10.0.0.1'], undefined],
      [['10.0.0.1'], 'the name has no address'],
      [['10.0.0.1'], 'queryA ETIMEOUT'],
      [['10.0.0.9'], undefined],
    ])
  })

  test('host names are looked up two at a time, so that a dead DNS server leaves threads for other work', async () => {
    let running = 0
    let most = 0
    const answers: (() => void)[] = []
    const names = new Names(async () => {
      most = Math.max(most, ++running)
      await new Promise<void>(resolve => answers.push(resolve))
      running--
      return v4('10.0.0.1')
    })
    for (let at = 0; at < 10; at++) names.follow(`app${at}.test`, () => {})
    for (let at = 0; at < 10; at++) {
      await vi.advanceTimersByTimeAsync(0)
      answers.shift()!()
    }
    await vi.advanceTimersByTimeAsync(0)
    expect(most).toBe(2)
    expect(texts(names.endpointsOf('app9.test'))).toEqual(['10.0.0.1'])
  })
})

test('a host name that is unfollowed and followed again before its lookup is looked up once', async () => {
  vi.useFakeTimers()
  try {
    let asked = 0
    const held: (() => void)[] = []
    const names = new Names(async name => {
      if (name !== 'app.test' && held.length < 2) await new Promise<void>(resolve => held.push(resolve))
      else if (name === 'app.test') asked++
      return v4('10.0.0.1')
    })
    names.intervalMs = 1000
    for (const name of ['slow1.test', 'slow2.test']) names.follow(name, () => {})
    for (let i = 0; i < 5; i++) names.follow('app.test', () => {})()
    names.follow('app.test', () => {})
    for (const end of held) end()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(asked).toBeGreaterThan(8)
    expect(asked).toBeLessThan(13)
  } finally {
    vi.useRealTimers()
  }
})

function raise(message: string): never {
  throw new Error(message)
}
