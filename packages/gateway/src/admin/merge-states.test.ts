import { describe, expect, it } from 'vitest'
import { mergeStates, type ProcessState } from './merge-states.ts'

const cause = {
  kind: 'down',
  code: 'STORE_UNREACHABLE',
  what: 'Redis cannot be reached',
  trouble: 'away',
  remedy: '',
} as const
const outage = { ...cause, under: 0 }
const store = {
  ...{ healthy: true, since: 10, fleet: { size: 3, rank: 0, known: true }, rules: [], outages: [], clockSteps: [] },
  ...{ asked: 0, decidedHere: 0, leases: { keys: 0, permits: 0, decided: 0, requests: 0 } },
}
const state = (more: Partial<ProcessState> = {}): ProcessState => ({ keys: 5, maxKeys: 100, overflowing: [], ...more })

describe('the states of several processes', () => {
  it('keys are added up, and one process without the store is trouble of the gateway', () => {
    const ill = { ...store, healthy: false, since: 50, trouble: 'connect ECONNREFUSED', rules: ['hello'] }
    const merged = mergeStates([state({ store }), state({ store: ill, overflowing: ['hello'] }), state({ store })])
    expect(merged).toMatchObject({ keys: 15, maxKeys: 300, overflowing: ['hello'] })
    expect(merged!.store).toMatchObject({
      healthy: false,
      since: 50,
      trouble: 'connect ECONNREFUSED',
      rules: ['hello'],
    })
  })

  it('an outage that several processes had is listed once, with the calls of all', () => {
    const one = { ...store, outages: [{ ...outage, since: 100, until: 200, calls: 3, over: 1 }] }
    const other = {
      ...store,
      outages: [
        { ...outage, since: 110, until: 230, calls: 4, over: 2 },
        { ...outage, since: 400, calls: 1, over: 0 },
      ],
    }
    expect(mergeStates([state({ store: one }), state({ store: other })])!.store!.outages).toMatchObject([
      { since: 100, until: 230, calls: 7, over: 3 },
      { since: 400, calls: 1 },
    ])
  })

  it('without processes nothing is known', () => {
    expect(mergeStates([])).toBeUndefined()
    expect(mergeStates([state()])!.store).toBeUndefined()
  })
})
