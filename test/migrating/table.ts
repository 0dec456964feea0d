import type { Row } from './row.ts'

/** The rows as a table of docs/migrating.md. */
export function tableOf(rows: readonly Row[]): string {
  const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``
  const lines = rows.map(({ theirs, ours, note = '' }) => `| ${code(theirs)} | ${code(ours)} | ${note} |`)
  return ['| there | Diana | |', '|---|---|---|', ...lines].join('\n')
}
