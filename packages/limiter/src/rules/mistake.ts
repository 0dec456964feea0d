/** One mistake in a rule document; line and column begin at 1, and are 0 if there is no text. */
export interface Mistake {
  /** Empty if the rules were given in code. */
  readonly file: string
  readonly line: number
  readonly column: number
  /** The id of the rule concerned. */
  readonly rule?: string
  /** The fault, and the remedy. */
  readonly message: string
}

/** Returns one line for a person: `file:line:col rule "id": what, and what to do`; without a place if there is none. */
export function formatMistake(mistake: Mistake): string {
  const { file, line, column, rule, message } = mistake
  const place = line === 0 ? file : `${file}:${line}:${column}`
  const subject = [place, rule === undefined ? '' : `rule "${rule}"`].filter(Boolean).join(' ')
  return subject === '' ? message : `${subject}: ${message}`
}
