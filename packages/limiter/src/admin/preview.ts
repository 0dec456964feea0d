import { Decider } from '../decision/decider.ts'
import { refundCharge } from '../decision/receipt.ts'
import type { RuleState } from '../decision/rule-state.ts'
import { bindCounters } from '../engine/bind-counters.ts'
import type { CompiledDocument } from '../rules/compile.ts'
import type { Rule, RuleDocument } from '../rules/rule.ts'
import { createCounters } from '../stats/counters.ts'
import type { RecordedCall } from '../stats/recorder.ts'
import type { Tally } from '../stats/tally.ts'
import { MemoryStore } from '../stores/memory/memory-store.ts'

export interface PassedAndRefused {
  readonly allowed: number
  readonly refused: number
}

/** The decisions that rules would have made on recent calls, beside those of the present ones. */
export interface Preview {
  /** Milliseconds since 1970; the same if there were no calls. */
  readonly from: number
  readonly to: number
  readonly calls: number
  /** True if the calls were too many to record all: then numbers are for one caller in `oneOf`, times `oneOf`. */
  readonly sampled: boolean
  readonly oneOf: number
  readonly total: { readonly before: PassedAndRefused; readonly after: PassedAndRefused }
  readonly rules: readonly {
    readonly id: string
    readonly before: PassedAndRefused
    readonly after: PassedAndRefused
  }[]
}

type Compile = (document: RuleDocument) => CompiledDocument

interface Replay {
  readonly total: PassedAndRefused
  readonly rules: ReadonlyMap<string, PassedAndRefused>
}

const nothing: PassedAndRefused = { allowed: 0, refused: 0 }

/** Dimensions that do not distinguish callers. */
const ofTheCall = /^(?:resource|method|host)$/

/** Decides recorded calls twice, by their own moments: nothing of the running limiter is touched. */
export function preview(
  calls: readonly RecordedCall[],
  before: RuleDocument,
  after: RuleDocument,
  compile: Compile,
): Preview {
  const oneOf = calls[0]?.oneOf ?? 1
  const old = replay(calls, before, compile, oneOf)
  const proposed = replay(calls, after, compile, oneOf)
  const ids = new Set([...proposed.rules.keys(), ...old.rules.keys()])
  return {
    from: calls[0]?.at ?? 0,
    to: calls.at(-1)?.at ?? 0,
    calls: calls.length * oneOf,
    sampled: oneOf > 1,
    oneOf,
    total: { before: old.total, after: proposed.total },
    rules: [...ids].map(id => {
      return { id, before: old.rules.get(id) ?? nothing, after: proposed.rules.get(id) ?? nothing }
    }),
  }
}

function replay(calls: readonly RecordedCall[], document: RuleDocument, compile: Compile, oneOf: number): Replay {
  const rules = document.rules.map(rule => thin(rule, oneOf))
  const counters = createCounters()
  const store = new MemoryStore()
  let now = 0
  const { rules: compiled, allows, denies } = compile({ ...document, rules })
  const states: RuleState[] = bindCounters(compiled, [], store, 0)
  const decider = new Decider({
    rules: states,
    allows,
    denies,
    now: () => now,
    store,
    answer: document.answer,
    counters,
    onRelease: (receipts, which) => {
      for (const receipt of receipts) refundCharge(receipt, now, which)
    },
  })
  for (const { at, call, cost } of calls) {
    now = Math.round(at * 1000)
    // the duration of a call is not known: it releases its slot at once
    decider.takeLocal(call, cost, now).release()
  }
  const times = ({ allowed, refused }: Tally) => ({ allowed: allowed * oneOf, refused: refused * oneOf })
  return { total: times(counters.total), rules: new Map(states.map(({ rule, tally }) => [rule.id, times(tally)])) }
}

/** Reduces the limit of a rule that counts callers together to the part of one caller in `oneOf`. */
function thin(rule: Rule, oneOf: number): Rule {
  if (oneOf === 1 || rule.by.some(name => !ofTheCall.test(name))) return rule
  return {
    ...rule,
    limits: rule.limits.map(limit => ({ ...limit, count: Math.max(1, Math.round(limit.count / oneOf)) })),
  }
}
