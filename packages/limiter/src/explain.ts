import type { Call } from './call.ts'
import { describePart, type KeyPart } from './dimensions/key.ts'
import type { CountedRule } from './judgement.ts'
import type { Decision } from './verdict.ts'

/** Why a rule would let a call pass or not. */
export interface RuleExplanation {
  readonly rule: string
  readonly algorithm: string
  /** Dimension by dimension, what the call is counted under; empty for a rule that counts all calls together. */
  readonly key: Readonly<Record<string, KeyPart>>
  readonly decisions: readonly Decision[]
}

export function explain(call: Call, met: readonly CountedRule[], decisions: readonly Decision[]): RuleExplanation[] {
  return met.map(({ rule }) => {
    const parts = rule.keyParts.map(([name, read]) => [name, describePart(read(call))] as const)
    return {
      rule: rule.id,
      algorithm: rule.algorithm,
      key: Object.fromEntries(parts),
      decisions: decisions.filter(decision => decision.rule === rule.id),
    }
  })
}
