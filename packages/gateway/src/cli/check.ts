import { readFile } from 'node:fs/promises'
import { algorithms, dimensions, formatMistake, type Mistake, parseText } from 'diana-limiter'
import { type Command, Complaint, type Terminal } from './command.ts'

type Checked = { readonly file: string } & (
  | { readonly ok: true; readonly rules: number }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] }
)

/** `diana check`: are these rule files good? */
export const check: Command = {
  name: 'check',
  summary: 'Validates rule files; exit 0 if all are good, or 1 with one line per mistake.',
  usage: 'FILE… [--json]',
  details: ['  FILE     a rule file; - is standard input', '  --json   print the result as JSON'],
  options: { json: { type: 'boolean' } },
  async run({ words, options }, terminal) {
    if (words.length === 0) throw new Complaint(2, 'name at least one rule file')
    const results: Checked[] = []
    for (const file of words) results.push(await checkFile(file, terminal))
    if (options.json === true) terminal.print(JSON.stringify(results, null, 2))
    else for (const result of results) tell(result, terminal)
    return results.every(({ ok }) => ok) ? 0 : 1
  },
}

async function checkFile(name: string, terminal: Terminal): Promise<Checked> {
  const file = name === '-' ? 'stdin' : name
  let text: string
  try {
    text = name === '-' ? await readAll(terminal.input) : await readFile(name, 'utf8')
  } catch (error) {
    const message = `cannot be read (${(error as NodeJS.ErrnoException).code}): check the path`
    return { file, ok: false, mistakes: [{ file, line: 0, column: 0, message }] }
  }
  const parsed = parseText(text, file, { algorithms, dimensions })
  if (parsed.document === undefined) return { file, ok: false, mistakes: parsed.mistakes }
  return { file, ok: true, rules: parsed.document.rules.length }
}

async function readAll(input: Terminal['input']): Promise<string> {
  const pieces: Uint8Array[] = []
  for await (const piece of input) pieces.push(typeof piece === 'string' ? Buffer.from(piece) : piece)
  return Buffer.concat(pieces).toString('utf8')
}

function tell(result: Checked, terminal: Terminal): void {
  if (result.ok) terminal.print(`${result.file}: ok, ${result.rules} ${result.rules === 1 ? 'rule' : 'rules'}`)
  for (const mistake of result.ok ? [] : result.mistakes) {
    // no line: there was no text to find a mistake in
    if (mistake.line === 0) terminal.complain(`diana check: ${mistake.file} ${mistake.message}`)
    else terminal.print(formatMistake(mistake))
  }
}
