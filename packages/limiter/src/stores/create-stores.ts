import type { CountedRule } from '../decision/pending-verdict.ts'
import { shareRules } from '../decision/rule-states.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { RuleDocument } from '../rules/rule.ts'
import { SharedStores } from './composite-store.ts'
import { SharedStore, type SharedStoreOptions } from './failover/failover-store.ts'
import type { StoreStatus } from './failover/store-health.ts'
import type { Roll } from './membership/registry.ts'
import type { MemoryStore } from './memory/memory-store.ts'
import type { FleetStore } from './store.ts'

/** The stores that are not this process's own, and how it stands with the way to them. */
export interface SharingParts {
  /** Where rules are counted for the whole fleet. */
  readonly fleet?: FleetStore | undefined
  /** Where the processes that count there know of each other. */
  readonly roll?: Roll | undefined
  readonly hasParts?: boolean | undefined
  readonly reconnect?: (() => void) | undefined
  readonly onReady?: ((listener: () => void) => void) | undefined
  readonly lastError?: (() => unknown) | undefined
  /** Where the processes of this machine count together what is not the fleet's. */
  readonly machine?: (FleetStore & Roll) | undefined
  /** How many they are, if that is known. */
  readonly machineProcesses?: number | undefined
}

export interface SharingHooks {
  readonly memory: MemoryStore
  readonly now: () => number
  readonly rules: () => readonly CountedRule[]
  readonly onFleet: (status: StoreStatus) => void
  readonly onMachine: (status: StoreStatus) => void
}

const DEFAULT_STORE_TIMEOUT_MS = 400
/** A counting process that dies is noticed at once; this is for one that hangs, and must outlast a busy machine. */
const COUNTING_TIMEOUT_MS = 500

/** The stores in which rules are counted together with other processes; each with this process to stand in for it. */
export function shareCounts(parts: SharingParts, { store }: RuleDocument, hooks: SharingHooks): SharedStores {
  const { memory, now, rules } = hooks
  const sharing = (isOurs: (rule: CompiledRule) => boolean): Pick<SharedStoreOptions, 'now' | 'rules' | 'onPart'> => ({
    now,
    rules: () => rules().flatMap(({ rule, counter }) => (counter && isOurs(rule) ? [rule.id] : [])),
    onPart: () => shareRules(rules(), stores, now()),
  })
  const { fleet, machine, machineProcesses, ...way } = parts
  const stores = new SharedStores({
    fleet:
      fleet &&
      new SharedStore(fleet, memory, {
        ...way,
        ...sharing(({ distributed }) => distributed),
        timeoutMs: store?.timeoutMs ?? DEFAULT_STORE_TIMEOUT_MS,
        assumedFleet: store?.fleet,
        onChange: hooks.onFleet,
      }),
    machine:
      machine &&
      new SharedStore(machine, memory, {
        ...sharing(({ distributed }) => !distributed),
        roll: machine,
        timeoutMs: COUNTING_TIMEOUT_MS,
        assumedFleet: machineProcesses,
        onChange: hooks.onMachine,
      }),
  })
  return stores
}
