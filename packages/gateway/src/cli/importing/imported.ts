/** A rule as it stands in a rule file. */
export interface ImportedRule {
  readonly id: string
  readonly [option: string]: unknown
}

/** The rules of another program's configuration, and what could not be converted. */
export interface Imported {
  readonly rules: readonly ImportedRule[]
  readonly warnings: readonly string[]
}
