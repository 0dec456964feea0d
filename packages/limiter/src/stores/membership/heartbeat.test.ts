import { VirtualTime } from '@test/fleet/virtual-time'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { classifyError, type StoreError } from '../store-error.ts'
import { Fleet } from './fleet.ts'
import { Heartbeat, type HeartbeatOptions } from './heartbeat.ts'
import type { Membership } from './registry.ts'

vi.mock('node:timers/promises', async () => {
  const { virtualPause } = await import('@test/fleet/virtual-time')
  return { setTimeout: virtualPause }
})

let time = new VirtualTime()
beforeEach(() => {
  time = new VirtualTime()
  time.install(1)
})
afterEach(() => time.uninstall())

const alone: Membership = { era: 'one', size: 1, rank: 0, heard: 1, back: 1 }
const after = (ms: number): Promise<Membership> => new Promise(resolve => time.after(ms, () => resolve(alone)))
const refuse = (message: string): Promise<Membership> => Promise.reject(new Error(message))
const isSilent: HeartbeatOptions<StoreError>['mayAnswer'] = ({ code }) => code === 'STORE_SILENT'

function create(register: () => Promise<Membership>, options: Partial<HeartbeatOptions<StoreError>> = {}) {
  const troubles: string[] = []
  const fleet = new Fleet({ register, leave: async () => {} }, { assumed: 1, onChange: () => {} })
  const heartbeat = new Heartbeat(fleet, {
    timeoutMs: 400,
    classify: classifyError,
    isPaused: () => false,
    onTrouble: ({ code }) => troubles.push(code),
    onForgotten: () => {},
    ...options,
  })
  let startedAt: number | undefined
  const start = async (untilMs: number): Promise<number | undefined> => {
    void heartbeat.start().then(() => {
      startedAt = time.now
      heartbeat.stop()
    })
    await time.runUntil(untilMs)
    return startedAt
  }
  return { fleet, heartbeat, troubles, start }
}

describe('the start of a process', () => {
  it('the start of a process waits for an answer that takes two seconds, as on a busy machine', async () => {
    const { fleet, troubles, start } = create(() => after(2000), { mayAnswer: isSilent })
    expect(await start(10_000)).toBe(2000)
    expect([fleet.isKnown, troubles]).toEqual([true, []])
  })

  it('the start of a process continues when the first connections were silent', async () => {
    const register = () => (time.now < 1500 ? refuse('no answer for 500 ms') : after(1))
    const { fleet, troubles, start } = create(register, { mayAnswer: isSilent })
    expect(await start(10_000)).toBeLessThan(1600)
    expect([fleet.isKnown, troubles]).toEqual([true, []])
  })

  it('the start of a process counts a stall of this process as one attempt', async () => {
    const host = { stalledUntil: 0 }
    const register = async (): Promise<Membership> => {
      host.stalledUntil = time.now + 2000
      await new Promise<void>(resolve => setTimeout(resolve, 1))
      return time.now < 7000 ? refuse('no answer for 500 ms') : alone
    }
    const { fleet, start } = create(register, { mayAnswer: isSilent })
    await time.as(host, () => start(20_000))
    expect(fleet.isKnown).toBe(true)
  })

  it('the start of a process does not wait for a store that refuses connections', async () => {
    const { troubles, start } = create(() => refuse('connect ECONNREFUSED'), { mayAnswer: isSilent })
    expect(await start(10_000)).toBeLessThan(500)
    expect(troubles).toEqual(['STORE_REFUSES_CONNECTIONS'])
  })

  it('the start of a process ends after three seconds if the store never answers', async () => {
    const { troubles, start } = create(() => new Promise(() => {}), { mayAnswer: isSilent })
    expect(await start(20_000)).toBe(3000)
    expect(troubles).toEqual(['STORE_SILENT'])
  })
})

describe('a heartbeat that is not answered in time', () => {
  it.each([
    ['is an outage if no call was answered meanwhile', 0, ['STORE_SILENT']],
    ['is no outage if calls were answered meanwhile', 1, []],
  ])('a heartbeat that is not answered in time %s', async (_, answersPerRead, expected) => {
    let answers = 0
    const { heartbeat, troubles } = create(() => new Promise(() => {}), {
      answers: () => (answers += answersPerRead),
    })
    void heartbeat.beat()
    await time.runUntil(2000)
    expect(troubles).toEqual(expected)
  })
})

it('an error of a connection that was silent is classified as silence', () => {
  expect(classifyError(new Error('no answer for 500 ms'))).toMatchObject({ code: 'STORE_SILENT', isSilent: false })
})
