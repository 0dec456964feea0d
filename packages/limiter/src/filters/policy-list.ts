import type { Decision } from '../verdict.ts'

/** Structured fields (RFC 9651) know integers of at most 15 digits. */
const largestInteger = 999_999_999_999_999

const mostKnown = 10_000

/** Most limits are whole again within an hour, and what is said of that is written once. */
const times: readonly string[] = Array.from({ length: 3601 }, (_, seconds) => `;t=${seconds}`)

/**
 * A RateLimit-Policy list, grown by one limit at a time. Calls that meet the same limits have the same list, so each is
 * written once and found again; a limit that has changed since is written anew.
 */
export class PolicyList {
  static #empty = new PolicyList('', '', 0, undefined)
  static #known = 0

  readonly text: string
  /** How the last limit begins in the list of what is left: `"sms";r=`, or `, "sms#2";r=`. */
  readonly #lastName: string
  readonly #level: number
  readonly #last: Decision | undefined
  readonly #longer = new Map<string, PolicyList>()
  /** The longer list that was asked for last. */
  #latest: PolicyList | undefined

  private constructor(text: string, lastName: string, level: number, last: Decision | undefined) {
    this.text = text
    this.#lastName = lastName
    this.#level = level
    this.#last = last
  }

  static get empty(): PolicyList {
    // forgets everything at once, since what is in use is soon known again
    if (PolicyList.#known > mostKnown) {
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

  /** What the last limit has left, as the other list tells it; no seconds where no moment can be named. */
  standing(remaining: number, seconds: number | undefined): string {
    const time = seconds === undefined ? '' : (times[seconds] ?? `;t=${seconds}`)
    return `${this.#lastName}${remaining}${time}`
  }

  endsWith({ rule, limit, periodMs }: Decision): boolean {
    const last = this.#last
    return last !== undefined && last.rule === rule && last.limit === limit && last.periodMs === periodMs
  }
}

/** The first limit of a rule bears the rule's name, the others `name#2`, `name#3`: no rule is called that. */
export function policyName(rule: string, level: number): string {
  return level === 1 ? rule : `${rule}#${level}`
}

/** A limit without a period is on calls under way, and has no window to name. */
export function windowOf({ periodMs }: Decision): string {
  return periodMs === 0 ? ';qu="concurrent-requests"' : `;w=${Math.ceil(periodMs / 1000)}`
}

export function whole(count: number): number {
  return count > largestInteger ? largestInteger : Math.floor(count)
}
