import type { RuleState } from '../decision/rule-state.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { RuleDocument } from '../rules/rule.ts'
import { CompositeStore } from '../stores/composite-store.ts'
import { countingStatus } from '../stores/counting/counting-status.ts'
import { FailoverStore, type FailoverStoreOptions } from '../stores/failover/failover-store.ts'
import type { StoreStatus } from '../stores/failover/store-health.ts'
import type { MembershipRegistry } from '../stores/membership/registry.ts'
import type { MemoryStore } from '../stores/memory/memory-store.ts'
import type { SharedStore } from '../stores/store.ts'
import { shareRules } from './bind-counters.ts'

/** The stores that are shared with other processes, and the connection to them. */
export interface SharedStoresOptions {
  /** The store in which rules are counted for the whole fleet. */
  readonly fleet?: SharedStore | undefined
  /** The registry of the processes that count there. */
  readonly registry?: MembershipRegistry | undefined
  readonly hasParts?: boolean | undefined
  readonly reconnect?: (() => void) | undefined
  readonly onReady?: ((listener: () => void) => void) | undefined
  readonly onLost?: ((listener: () => void) => void) | undefined
  readonly lastError?: (() => unknown) | undefined
  /** The store of this machine's processes, for rules that are not counted for the fleet. */
  readonly machine?: (SharedStore & MembershipRegistry) | undefined
  /** The number of these processes, if it is known. */
  readonly machineProcesses?: number | undefined
  /** A call waits no longer for the fleet's store, whatever the document says. */
  readonly maxStoreWaitMs?: number | undefined
}

export interface SharingHooks {
  readonly memory: MemoryStore
  readonly now: () => number
  readonly rules: () => readonly RuleState[]
  readonly onFleet: (status: StoreStatus) => void
  readonly onMachine: (status: StoreStatus) => void
}

const DEFAULT_STORE_TIMEOUT_MS = 400
/** A counting process that dies is noticed at once; this is for one that hangs, and must be long enough for a busy machine. */
const COUNTING_TIMEOUT_MS = 500

/** Creates the shared stores; each with a fallback to this process. */
export function createSharedStores(
  parts: SharedStoresOptions,
  { store }: RuleDocument,
  hooks: SharingHooks,
): CompositeStore {
  const { memory, now, rules } = hooks
  const sharing = (
    isOurs: (rule: CompiledRule) => boolean,
  ): Pick<FailoverStoreOptions, 'now' | 'rules' | 'onPart'> => ({
    now,
    rules: () => rules().flatMap(({ rule, counter }) => (counter && isOurs(rule) ? [rule.id] : [])),
    onPart: () => shareRules(rules(), stores, now()),
  })
  const { fleet, machine, machineProcesses, maxStoreWaitMs = Number.POSITIVE_INFINITY, ...way } = parts
  const stores = new CompositeStore({
    fleet:
      fleet &&
      new FailoverStore(fleet, memory, {
        ...way,
        ...sharing(({ distributed }) => distributed),
        timeoutMs: Math.min(store?.timeoutMs ?? DEFAULT_STORE_TIMEOUT_MS, maxStoreWaitMs),
        assumedFleet: store?.fleet,
        onChange: hooks.onFleet,
      }),
    machine:
      machine &&
      new FailoverStore(machine, memory, {
        ...sharing(({ distributed }) => !distributed),
        registry: machine,
        timeoutMs: COUNTING_TIMEOUT_MS,
        assumedFleet: machineProcesses,
        onChange: status => hooks.onMachine(countingStatus(status)),
      }),
  })
  return stores
}
