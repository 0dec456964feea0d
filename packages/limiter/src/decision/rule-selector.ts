import type { Call } from '../call.ts'
import { compileMatch } from '../rules/match/match.ts'
import type { NamedRules, RuleState } from './pending-verdict.ts'

/** Tests for callers that pass uncounted, and for callers that never pass; undefined if none are listed. */
export interface CallerScreens {
  readonly allows?: ((call: Call) => boolean) | undefined
  readonly denies?: ((call: Call) => boolean) | undefined
}

/** A list that a caller is on: of a rule, or of the document. */
export interface ListedCaller {
  readonly list: 'allow' | 'deny'
  readonly rule?: string | undefined
}

/** What `find` says of a call that is refused whatever was counted. */
export const DENIED: number = -1

/** Finds the rules that a call is judged by: those it matches and those it names, but for those that let it off. */
export class RuleFinder {
  /** The rule that denied the call before; undefined where the document did. */
  deniedBy: RuleState | undefined
  /** Why: the call has several values to count by, or its caller is on a list. */
  deniedAs: 'ambiguous' | 'denied' = 'denied'
  readonly #match: (call: Call, found: RuleState[]) => number
  readonly #byId: ReadonlyMap<string, RuleState>
  readonly #screens: CallerScreens
  readonly #isScreened: boolean
  readonly #hasScreeningRules: boolean

  constructor(rules: readonly RuleState[], screens: CallerScreens) {
    this.#match = compileMatch(rules)
    this.#byId = new Map(rules.map(counted => [counted.rule.id, counted]))
    this.#screens = screens
    this.#isScreened = screens.allows !== undefined || screens.denies !== undefined
    this.#hasScreeningRules = rules.some(({ rule }) => isScreening(rule))
  }

  /** Puts the rules into `found`, in document order and then as they are named, and says how many they are; or DENIED. */
  find(call: Call, found: RuleState[], options: NamedRules | undefined): number {
    if (this.#isScreened) {
      this.deniedBy = undefined
      this.deniedAs = 'denied'
      if (this.#screens.denies?.(call)) return DENIED
      if (this.#screens.allows?.(call)) return 0
    }
    let size = options?.rule === undefined ? this.#match(call, found) : this.#findNamed(call, found, options)
    if (options?.after !== undefined) size = without(options.after, found, size)
    return this.#hasScreeningRules ? this.#screen(call, found, size) : size
  }

  /** The lists that the caller of a call is on: those of the document, else those of the rules that the call meets. */
  lists(call: Call, options: NamedRules | undefined): ListedCaller[] {
    if (this.#screens.denies?.(call)) return [{ list: 'deny' }]
    if (this.#screens.allows?.(call)) return [{ list: 'allow' }]
    const found: RuleState[] = []
    const size = options?.rule === undefined ? this.#match(call, found) : this.#findNamed(call, found, options)
    return found.slice(0, size).flatMap(({ rule }): ListedCaller[] => {
      if (rule.enforced && rule.denies?.(call)) return [{ list: 'deny', rule: rule.id }]
      return rule.exempts?.(call) ? [{ list: 'allow', rule: rule.id }] : []
    })
  }

  #findNamed(call: Call, found: RuleState[], { rule: names = [], only }: NamedRules): number {
    let size = only ? 0 : this.#match(call, found)
    for (const id of typeof names === 'string' ? [names] : names) {
      const counted = this.#byId.get(id)
      if (counted && !isAmong(counted, found, size)) found[size++] = counted
    }
    return size
  }

  #screen(call: Call, found: RuleState[], size: number): number {
    let kept = 0
    for (let i = 0; i < size; i++) {
      const counted = found[i]!
      const { rule } = counted
      if (rule.enforced && rule.denies?.(call)) return this.#deny(counted, 'denied')
      if (rule.exempts?.(call)) continue
      if (rule.enforced && rule.isAmbiguous?.(call)) return this.#deny(counted, 'ambiguous')
      found[kept++] = counted
    }
    return kept
  }

  #deny(counted: RuleState, as: RuleFinder['deniedAs']): number {
    this.deniedBy = counted
    this.deniedAs = as
    return DENIED
  }
}

function isScreening({ exempts, denies, isAmbiguous }: RuleState['rule']): boolean {
  return exempts !== undefined || denies !== undefined || isAmbiguous !== undefined
}

/** Drops the rules of these ids from the list, and returns how many are left. */
function without(ids: readonly string[], found: RuleState[], size: number): number {
  let kept = 0
  for (let i = 0; i < size; i++) {
    const counted = found[i]!
    if (!ids.includes(counted.rule.id)) found[kept++] = counted
  }
  return kept
}

function isAmong(counted: RuleState, found: readonly RuleState[], size: number): boolean {
  for (let i = 0; i < size; i++) if (found[i] === counted) return true
  return false
}
