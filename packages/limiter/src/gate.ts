import type { Call } from './call.ts'
import { ip } from './dimensions/ip.ts'
import { parseDuration } from './duration.ts'
import { DianaError } from './errors.ts'
import type { CountedRule, Gate } from './judgement.ts'
import type { SharedStores } from './shared-stores.ts'
import { localCharge, type MemoryStore } from './stores/memory.ts'
import { sharedCharge } from './stores/shared-charge.ts'
import { CROWD } from './stores/table.ts'

export interface GateKeeping {
  readonly store: MemoryStore
  readonly shared?: SharedStores | undefined
  readonly now: () => number
}

/** Blocks somebody by a rule, for its own time unless told; throws where it makes no sense. */
export async function blockBy(
  counted: CountedRule,
  who: Call | string,
  time: string | number | undefined,
  keeping: GateKeeping,
): Promise<void> {
  const { id, blockMs } = counted.rule
  const gate = requireGate(counted)
  const ms = typeof time === 'string' ? parseDuration(time) : (time ?? blockMs)
  if (ms === undefined || !Number.isSafeInteger(ms) || ms < 1) {
    throw new DianaError('BAD_CALL', `rule "${id}": block for how long? Say 10m, or a whole number of milliseconds`)
  }
  if (await blockCaller(gate, keyOf(counted, who), ms, keeping)) return
  const message = `rule "${id}": as many keys are live as may be, so nobody is blocked: raise maxKeys`
  throw new DianaError('BAD_CALL', message)
}

/** Lets somebody whom a rule has blocked in again. */
export async function unblockBy(counted: CountedRule, who: Call | string, shared?: SharedStores): Promise<void> {
  const { table, counter } = requireGate(counted)
  const key = keyOf(counted, who)
  table.reset(key)
  if (counter) await shared?.reset(counter, key)
}

/**
 * Blocks a caller for a time: here, or for the whole fleet if the rule is counted there. Where as many keys are live as may
 * be, nobody is added: a stranger's block would be every stranger's. Says whether the caller is blocked now.
 */
export function blockCaller(
  { table, counter }: Gate,
  key: string,
  ms: number,
  { store, shared, now }: GateKeeping,
): boolean | Promise<boolean> {
  if (counter && shared) {
    return shared.take([{ ...sharedCharge(counter, table, 'local'), key, cost: ms, mayWait: false }], now())
  }
  if (key !== '' && table.find(key) === CROWD && store.keys >= store.maxKeys) return false
  return store.take([{ ...localCharge(table), key, cost: ms, mayWait: false }], 1, now())
}

function requireGate({ rule: { id }, gate }: CountedRule): Gate {
  if (gate) return gate
  const message = `rule "${id}" blocks nobody: give it block: manual, or a time such as block: 10m`
  throw new DianaError('BAD_CALL', message)
}

function keyOf({ rule }: CountedRule, who: Call | string): string {
  if (typeof who !== 'string') return rule.key(who)
  const [name, ...more] = rule.by
  if (name === undefined || more.length > 0) {
    throw new DianaError('BAD_CALL', `rule "${rule.id}" does not count by one dimension: say whom by a call`)
  }
  // an address is one however it is spelled; of the others the value says all
  const call = { method: '', path: '/' }
  return rule.key(name === ip.name ? { ...call, ip: who } : { ...call, attributes: { [name]: who } })
}
