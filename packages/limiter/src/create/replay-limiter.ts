import type { Algorithm } from '../algorithms/algorithm.ts'
import type { Call } from '../call.ts'
import { type Clock, inMicroseconds } from '../common/clock.ts'
import { DENIED, RuleSelector } from '../decision/rule-selector.ts'
import type { RuleState } from '../decision/rule-state.ts'
import { createSharedStores, type SharedStoresOptions } from '../engine/create-shared-stores.ts'
import { Engine, type EngineOptions } from '../engine/engine.ts'
import type { AddressReader } from '../http/ip-address.ts'
import { Limiter } from '../limiter.ts'
import type { Timers } from '../queue/timers.ts'
import { mergeExtensions } from '../reload/extensions.ts'
import type { Extensions } from '../reload/plugins.ts'
import type { CompiledRule } from '../rules/compile.ts'
import type { RuleDocument } from '../rules/rule.ts'
import { LedgerRegistry } from '../stores/ledgers/ledger-registry.ts'
import { LedgerStore } from '../stores/ledgers/ledger-store.ts'
import type { TransactionalStore } from '../stores/transactional-store.ts'

export interface ReplayOptions {
  readonly extensions?: Partial<Extensions> | undefined
  readonly clock: Clock
  readonly timers?: Timers | undefined
  readonly maxKeys?: number | undefined
  /** The store that counts rules of the fleet, for a process among several; left out, the rules are counted here. */
  readonly fleet?: ReplayFleet | undefined
}

/** A process among several: its name, which gives its rank, and the store of all. */
export interface ReplayFleet extends Pick<SharedStoresOptions, 'onReady' | 'onLost'> {
  readonly process: string
  readonly store: TransactionalStore
}

/** The rules of a document and a limiter that decides by them, with moments and timers of a recording. Nothing is connected or followed. */
export interface ReplayLimiter {
  readonly limiter: Limiter
  readonly rules: readonly CompiledRule[]
  readonly addressOf: AddressReader
  /** Joins the other processes of the fleet, if there is one. */
  start(): Promise<void>
  /** Puts the rules of a call, or of a message, into `found` and returns their number; -1 if it is denied regardless of counts. */
  select(call: Call, found: CompiledRule[], isMessage?: boolean): number
  /** The rule that denied the call selected last; undefined if the document did. */
  readonly deniedBy: CompiledRule | undefined
}

/** Throws if the document names what cannot be compiled. Rules that are counted for a fleet are counted here. */
export function createReplayLimiter(document: RuleDocument, options: ReplayOptions): ReplayLimiter {
  const vocabulary = mergeExtensions(options.extensions ?? {}, [])
  const { store, remote: _remote, sections: _sections, ...rest } = document
  const { fleet } = options
  // every call is decided by all that was counted before
  const local: RuleDocument = fleet
    ? { ...rest, store, rules: document.rules.map(rule => ({ ...rule, lease: 'off' })) }
    : { ...rest, rules: document.rules.map(rule => ({ ...rule, count: 'local' })) }
  const engine = new Engine({
    ...{ document: local, vocabulary, algorithms: vocabulary.algorithms, dimensions: vocabulary.dimensions },
    ...{ clock: options.clock, timers: options.timers, maxKeys: options.maxKeys },
    ...(fleet && fleetOf(fleet, options.clock, vocabulary.algorithms)),
  })
  let made: RuleSelector | undefined
  // most callers never ask for it
  const selector = (): RuleSelector => {
    made ??= new RuleSelector(engine.decider.rules, engine.compile(local))
    return made
  }
  const states: RuleState[] = []
  return {
    limiter: new Limiter(engine),
    rules: engine.decider.rules.map(({ rule }) => rule),
    addressOf: engine.addressOf,
    start: () => engine.start(),
    select(call, found, isMessage = false) {
      const size = selector().find(call, states, isMessage ? { message: true } : undefined)
      if (size === DENIED) return size
      for (let i = 0; i < size; i++) found[i] = states[i]!.rule
      return size
    },
    get deniedBy() {
      return selector().deniedBy?.rule
    },
  }
}

function fleetOf(
  { process, store, onReady, onLost }: ReplayFleet,
  clock: Clock,
  algorithms: readonly Algorithm[],
): Partial<EngineOptions> {
  const now = inMicroseconds(clock)
  const fleet = new LedgerStore(store, { algorithms, now, holder: process })
  const registry = new LedgerRegistry(store, { now, id: process })
  return { fleet, registry, onReady, onLost, share: createSharedStores, disconnect: () => fleet.close() }
}
