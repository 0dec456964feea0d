import { randomUUID } from 'node:crypto'
import type { RuleChange, Where } from 'diana-limiter/admin'

/** The change that replaced a version. */
export interface ReplacedBy {
  /** The address that the change came from. */
  readonly from: string
  /** The name of the user, or which token was given. */
  readonly who: string
  /** The reason why it was made, if the operator said so. */
  readonly comment?: string | undefined
  /** The changes of the rules, the first of them. */
  readonly rules: readonly RuleChange[]
  /** The number of rules that were added, changed or removed. */
  readonly changed: number
}

/** A document as it stood before a change through the admin API. */
export interface EarlierVersion {
  readonly id: string
  /** The time when it was replaced, in milliseconds since 1970. */
  readonly at: number
  readonly where: Where
  readonly text: string
  readonly by: ReplacedBy
}

const mostVersions = 50
const mostCharacters = 8 * 1024 * 1024
const mostRules = 20
const unknownChange = { from: '', who: '', rules: [] }

/** The texts that were replaced through this API, so that a change can be taken back; in bounded memory. */
export class EarlierVersions {
  readonly #versions: EarlierVersion[] = []
  readonly #onChange: (all: () => readonly EarlierVersion[]) => void

  /** Begins with those of earlier runs; `onChange` gets all of them when there is a new one. */
  constructor(
    earlier: readonly EarlierVersion[] = [],
    onChange: (all: () => readonly EarlierVersion[]) => void = () => {},
  ) {
    this.#onChange = onChange
    for (const version of earlier) this.#keep(version)
  }

  add(where: Where, text: string, at: number, by: Omit<ReplacedBy, 'changed'> = unknownChange): void {
    const replaced = { ...by, rules: by.rules.slice(0, mostRules), changed: by.rules.length }
    this.#keep({ id: randomUUID(), at, where, text, by: replaced })
    this.#onChange(() => this.#versions)
  }

  /** Returns the newest first. */
  of(where: Where): EarlierVersion[] {
    return this.#versions.filter(version => version.where === where).reverse()
  }

  find(id: string): EarlierVersion | undefined {
    return this.#versions.find(version => version.id === id)
  }

  #keep(version: EarlierVersion): void {
    this.#versions.push(version)
    const size = () => this.#versions.reduce((sum, { text }) => sum + text.length, 0)
    while (this.#versions.length > mostVersions || (this.#versions.length > 1 && size() > mostCharacters)) {
      this.#versions.shift()
    }
  }
}
