import type { Call } from '../call.ts'
import { compileMatch } from '../rules/match/match.ts'
import type { NamedRules } from './check-options.ts'
import type { RuleState } from './rule-state.ts'

/** Tests for callers that pass uncounted, and for callers that never pass; undefined if none are listed. */
export interface CallerLists {
  readonly allows?: ((call: Call) => boolean) | undefined
  readonly denies?: ((call: Call) => boolean) | undefined
}

/** A list that a caller is on: of a rule, or of the document. */
export interface ListedCaller {
  readonly list: 'allow' | 'deny'
  readonly rule?: string | undefined
}

/** The result of `find` for a call that is refused regardless of counts. */
export const DENIED: number = -1

/** Finds the rules that decide a call: those it matches and those it names, except rules that exempt it. */
export class RuleSelector {
  /** The rule that denied the last call; undefined if the document did, or no rule could be found for its path. */
  deniedBy: RuleState | undefined
  /** The reason: the call has several values to count by, or too many paths, or its caller is on a deny list. */
  deniedAs: 'ambiguous' | 'denied' = 'denied'
  /** Puts the rules that a call matches into `found`, and returns their number. */
  readonly #match: (call: Call, found: RuleState[]) => number
  /** Finds the rules for messages of the WebSocket that a call has opened; made with the first message. */
  #matchMessage: ((call: Call, found: RuleState[]) => number) | undefined
  readonly #rules: readonly RuleState[]
  readonly #byId: ReadonlyMap<string, RuleState>
  readonly #lists: CallerLists
  readonly #hasLists: boolean
  readonly #hasListsOfRules: boolean

  constructor(rules: readonly RuleState[], lists: CallerLists) {
    this.#rules = rules
    this.#match = compileMatch(rules)
    this.#byId = new Map(rules.map(state => [state.rule.id, state]))
    this.#lists = lists
    this.#hasLists = lists.allows !== undefined || lists.denies !== undefined
    this.#hasListsOfRules = rules.some(({ rule }) => rule.isListed)
  }

  /** Puts the rules into `found`, in document order and then as they are named, and returns their number; or DENIED. */
  find(call: Call, found: RuleState[], options: NamedRules | undefined): number {
    const isPlain =
      options === undefined ||
      (options.rule === undefined && options.after === undefined && options.except === undefined && !options.message)
    if (isPlain && !this.#hasLists) {
      const size = this.#match(call, found)
      return this.#hasListsOfRules || size < 0 ? this.#screen(call, found, size) : size
    }
    return this.#findListed(call, found, options)
  }

  /** Returns the lists that the caller of a call is on: those of the document, else those of the rules that match the call. */
  lists(call: Call, options: NamedRules | undefined): ListedCaller[] {
    if (this.#lists.denies?.(call)) return [{ list: 'deny' }]
    if (this.#lists.allows?.(call)) return [{ list: 'allow' }]
    const found: RuleState[] = []
    // a path that can be read in too many ways has no rules
    const size =
      options?.rule === undefined ? this.#matchOf(options)(call, found) : this.#findNamed(call, found, options)
    return found.slice(0, Math.max(0, size)).flatMap(({ rule }): ListedCaller[] => {
      if (rule.enforced && rule.denies?.(call)) return [{ list: 'deny', rule: rule.id }]
      return rule.exempts?.(call) ? [{ list: 'allow', rule: rule.id }] : []
    })
  }

  #findListed(call: Call, found: RuleState[], options: NamedRules | undefined): number {
    this.deniedBy = undefined
    this.deniedAs = 'denied'
    if (this.#lists.denies?.(call)) return DENIED
    if (this.#lists.allows?.(call)) return 0
    let size = options?.rule === undefined ? this.#matchOf(options)(call, found) : this.#findNamed(call, found, options)
    if (options?.after !== undefined && size > 0) size = without(options.after, found, size)
    if (options?.except !== undefined && size > 0) size = without(options.except, found, size)
    return this.#screen(call, found, size)
  }

  #matchOf(options: NamedRules | undefined): (call: Call, found: RuleState[]) => number {
    if (!options?.message) return this.#match
    this.#matchMessage ??= compileMatch(this.#rules, 'messages')
    return this.#matchMessage
  }

  #findNamed(call: Call, found: RuleState[], options: NamedRules): number {
    const { rule: names = [], only } = options
    let size = only ? 0 : this.#matchOf(options)(call, found)
    if (size < 0) return size
    for (const id of typeof names === 'string' ? [names] : names) {
      const state = this.#byId.get(id)
      if (state && !isAmong(state, found, size)) found[size++] = state
    }
    return size
  }

  #screen(call: Call, found: RuleState[], size: number): number {
    if (size < 0) return this.#deny(undefined, 'ambiguous')
    let kept = 0
    for (let i = 0; i < size; i++) {
      const state = found[i]!
      const { rule } = state
      if (rule.isListed) {
        if (rule.enforced && rule.denies?.(call)) return this.#deny(state, 'denied')
        if (rule.exempts?.(call)) continue
        if (rule.enforced && rule.isAmbiguous?.(call)) return this.#deny(state, 'ambiguous')
      }
      if (kept < i) found[kept] = state
      kept++
    }
    return kept
  }

  #deny(state: RuleState | undefined, as: RuleSelector['deniedAs']): number {
    this.deniedBy = state
    this.deniedAs = as
    return DENIED
  }
}

/** Drops the rules of these ids from the list, and returns how many are left. */
function without(ids: readonly string[], found: RuleState[], size: number): number {
  let kept = 0
  for (let i = 0; i < size; i++) {
    const state = found[i]!
    if (!ids.includes(state.rule.id)) found[kept++] = state
  }
  return kept
}

function isAmong(state: RuleState, found: readonly RuleState[], size: number): boolean {
  for (let i = 0; i < size; i++) if (found[i] === state) return true
  return false
}
