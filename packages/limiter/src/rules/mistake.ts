/** One mistake in a rule document; line and column begin at 1, and are 0 if there is no text. */
export interface Mistake {
  readonly file: string
  readonly line: number
  readonly column: number
  /** The id of the rule concerned. */
  readonly rule?: string
  /** What is wrong, and what to do. */
  readonly message: string
}

/** One line for a person: `file:line:col rule "id": what, and what to do`. */
export function formatMistake(mistake: Mistake): string {
  const { file, line, column, rule, message } = mistake
  const place = `${file}:${line}:${column}`
  return rule === undefined ? `${place}: ${message}` : `${place} rule "${rule}": ${message}`
}
