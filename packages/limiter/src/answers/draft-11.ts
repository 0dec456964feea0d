import type { Decision, Verdict } from '../verdict.ts'

/** The place where headers are written: a framework's reply, or a list. */
export interface HeaderSink<Reply> {
  setHeader(reply: Reply, name: string, value: string): void
}

/** The part of a verdict that headers report. */
export type Limits = Pick<Verdict, 'decisions' | 'answer'>

/** Structured fields (RFC 9651) know integers of at most 15 digits. */
const MAX_INTEGER = 999_999_999_999_999

const MAX_LISTS = 10_000

/** The numbers of one limit when it was last written. */
interface Standing {
  list: PolicyList | undefined
  remaining: number
  seconds: number | undefined
  text: string
}

/**
 * Most callers have as much left as others have just had. Text that is concatenated for every answer costs more than all
 * else that is done to write it: V8 has to flatten it before Node can check it.
 */
const standings: readonly Standing[] = Array.from({ length: 1024 }, () => {
  return { list: undefined, remaining: 0, seconds: undefined, text: '' }
})

let lists = 0

/**
 * A RateLimit-Policy list, grown by one limit at a time. Calls with the same limits have the same list, so each is
 * written once and found again; a limit that has changed since is written again.
 */
export class PolicyList {
  static #empty = new PolicyList('', '', 0, undefined)
  static #known = 0

  readonly text: string
  /** The beginning of the last limit in the list of what is left: `"sms";r=`, or `, "sms#2";r=`. */
  readonly #lastName: string
  readonly #level: number
  readonly #last: Decision | undefined
  readonly #longer = new Map<string, PolicyList>()
  /** The longer list that was used last. */
  #latest: PolicyList | undefined
  readonly #seed: number

  private constructor(text: string, lastName: string, level: number, last: Decision | undefined) {
    this.text = text
    this.#lastName = lastName
    this.#level = level
    this.#last = last
    // limits with equal numbers have separate entries
    this.#seed = 401 * lists++
  }

  static get empty(): PolicyList {
    // forgets everything at once, since entries in use are soon added again
    if (PolicyList.#known > MAX_LISTS) {
      PolicyList.#known = 0
      PolicyList.#empty = new PolicyList('', '', 0, undefined)
    }
    return PolicyList.#empty
  }

  with(decision: Decision): PolicyList {
    const latest = this.#latest
    if (latest?.endsWith(decision)) return latest
    const known = this.#longer.get(decision.rule)
    if (known?.endsWith(decision)) {
      this.#latest = known
      return known
    }
    const level = this.#last?.rule === decision.rule ? this.#level + 1 : 1
    const name = `${this.text === '' ? '' : ', '}"${policyName(decision.rule, level)}"`
    const text = `${this.text}${name};q=${whole(decision.limit)}${windowOf(decision)}`
    const longer = new PolicyList(text, `${name};r=`, level, decision)
    this.#longer.set(decision.rule, longer)
    this.#latest = longer
    PolicyList.#known++
    return longer
  }

  /** Writes what the last limit has left, as in the other list; without seconds if no moment is known. */
  standing(remaining: number, seconds: number | undefined): string {
    const place = (remaining * 31 + (seconds ?? 0) * 7 + this.#seed) & (standings.length - 1)
    const latest = standings[place]!
    if (latest.list === this && latest.remaining === remaining && latest.seconds === seconds) return latest.text
    latest.list = this
    latest.remaining = remaining
    latest.seconds = seconds
    latest.text = `${this.#lastName}${remaining}${seconds === undefined ? '' : `;t=${seconds}`}`
    return latest.text
  }

  endsWith({ rule, limit, periodMs, unit }: Decision): boolean {
    const last = this.#last
    if (last === undefined || last.rule !== rule || last.unit !== unit) return false
    return last.limit === limit && last.periodMs === periodMs
  }
}

/** Names a policy: the first limit of a rule bears the rule's name, the others `name#2`, `name#3`, and no rule is called that. */
export function policyName(rule: string, level: number): string {
  return level === 1 ? rule : `${rule}#${level}`
}

/** Returns the window of a limit; one without a period is on calls under way, and has none to name. */
export function windowOf({ periodMs, unit }: Decision): string {
  if (periodMs === 0) return ';qu="concurrent-requests"'
  return `${unit === undefined ? '' : `;qu="${unit}"`};w=${Math.ceil(periodMs / 1000)}`
}

export function whole(count: number): number {
  return count > MAX_INTEGER ? MAX_INTEGER : Math.floor(count)
}

/** Writes draft-ietf-httpapi-ratelimit-headers-11: two lists, with one item per limit under the same name. */
export function writeDraft11<Reply>({ decisions }: Limits, sink: HeaderSink<Reply>, reply: Reply): void {
  let policies = PolicyList.empty
  let standings = ''
  for (let i = 0; i < decisions.length; i++) {
    const decision = decisions[i]!
    if (isUnnamed(decision)) continue
    policies = policies.with(decision)
    standings += policies.standing(whole(decision.remaining), resetSeconds(decision))
  }
  if (standings === '') return
  sink.setHeader(reply, 'RateLimit-Policy', policies.text)
  sink.setHeader(reply, 'RateLimit', standings)
}

/** True if headers do not show a limit: it refuses nothing, or its rule has none. */
export function isUnnamed({ shadow, hidden }: Decision): boolean {
  return shadow || hidden === true
}

export function refuses(decision: Decision): boolean {
  return !decision.allowed && !decision.shadow
}

/**
 * Returns when a limit resets; one that refuses names the moment at which it would let the call pass, so that Retry-After is never
 * earlier.
 */
export function resetMs(decision: Decision): number {
  return refuses(decision) ? decision.retryAfterMs : decision.resetAfterMs
}

export function resetSeconds(decision: Decision): number | undefined {
  const ms = resetMs(decision)
  if (ms === Number.POSITIVE_INFINITY) return undefined
  const seconds = Math.ceil(ms / 1000)
  return seconds === 0 && refuses(decision) ? 1 : seconds
}
