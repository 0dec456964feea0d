import { createReadStream } from 'node:fs'
import { dirname, isAbsolute } from 'node:path'
import { DianaError, type Mistake, type Plugin, type RuleDocument } from 'diana-limiter'
import { assertRules, type Extensions, importPlugins, mergeExtensions, pluginsNamedIn } from 'diana-limiter/gateway'
import { formatMistake, parseText, readValues } from 'diana-limiter/schema'
import { assertSafe } from '../admin/server/assert-safe.ts'
import { assertProxyProtocol, assertStartable, type PrepareOptions } from '../prepare-gateway.ts'
import { CliError, type Terminal } from '../process/terminal.ts'
import type { Finding } from '../rehearsal/bounds/findings.ts'
import { serveSection } from '../serve/serve-settings.ts'
import { type GatewaySettings, gatewaySection } from '../settings/gateway-settings.ts'
import type { Command } from './command.ts'

type Checked = { readonly file: string } & (
  | {
      readonly ok: true
      readonly rules: number
      readonly warnings?: readonly string[]
      readonly findings?: readonly Finding[]
    }
  | { readonly ok: false; readonly mistakes: readonly Mistake[] }
)

type Files = Omit<PrepareOptions, 'onTrouble'>

/** The parser takes no more than 4 MiB, so there is no use in reading on. */
const mostBytes = 4 * 1024 * 1024 + 1

/** `diana check`: are these rule files good? */
export const check: Command = {
  usage: 'FILE… [--strict] [--plugin FILE]… [--json]',
  details: [
    '  FILE             a rule file; - is standard input',
    '  --strict         also refuse rules without effect: that never match, can never refuse, or are shadowed; plans stricter than',
    '                   cheaper ones; and keys that callers choose if nothing else bounds their calls (see diana bound)',
    '  --plugin FILE    a module whose algorithms, dimensions and sources the rules may name; may be repeated',
    '  --json           print the result as JSON',
  ],
  options: { strict: { type: 'boolean' }, plugin: { type: 'string', multiple: true }, json: { type: 'boolean' } },
  async run({ words, options }, terminal) {
    if (words.length === 0) throw new CliError(2, 'no rule file given: diana check FILE')
    if (words.indexOf('-') !== words.lastIndexOf('-'))
      throw new CliError(2, 'standard input (-) can be given only once')
    const results: Checked[] = []
    const plugins = await loadPlugins((options.plugin as readonly string[] | undefined) ?? [])
    for (const file of words) results.push(await checkFile(file, plugins, terminal, options.strict === true))
    if (options.json === true) terminal.print(JSON.stringify(results, null, 2))
    else for (const result of results) tell(result, terminal)
    return results.every(({ ok }) => ok) ? 0 : 1
  },
}

/** Loads plugins by path, seen from where the command was written, with or without ./ in front. */
export async function loadPlugins(paths: readonly string[]): Promise<Plugin[]> {
  const files = paths.map(path => (isAbsolute(path) || path.startsWith('.') ? path : `./${path}`))
  return await importPlugins(files, '--plugin')
}

async function checkFile(
  name: string,
  given: readonly Plugin[],
  terminal: Terminal,
  isStrict: boolean,
): Promise<Checked> {
  const file = name === '-' ? 'stdin' : name
  let text: string
  try {
    text = await readText(name === '-' ? terminal.input : createReadStream(name))
  } catch (error) {
    const message = `cannot be read (${(error as NodeJS.ErrnoException).code}): check the path`
    return { file, ok: false, mistakes: [{ file, line: 0, column: 0, message }] }
  }
  try {
    const named = await importPlugins(pluginsNamedIn(text), file)
    const vocabulary = { ...mergeExtensions({}, [...given, ...named]), sections: [gatewaySection, serveSection] }
    const warnings: string[] = []
    const { document, mistakes } = parseText(text, file, vocabulary)
    if (document)
      await assertUsable(document, vocabulary, { folder: dirname(name), onWarning: text => warnings.push(text) })
    if (document === undefined) return { file, ok: false, mistakes }
    const findings = isStrict ? await findOddities(document, vocabulary) : []
    const faults = findings.filter(({ isFault }) => isFault)
    if (faults.length > 0) return { file, ok: false, mistakes: faults.map(fault => mistakeAt(text, file, fault)) }
    return {
      ...{ file, ok: true, rules: document.rules.length },
      ...(warnings.length > 0 && { warnings }),
      ...(findings.length > 0 && { findings }),
    }
  } catch (error) {
    if (!(error instanceof DianaError)) throw error
    // a plugin that cannot be used is a mistake in the file that names it
    const message = error.message.replace(`${file}: `, '').replaceAll('\n', ' ')
    return { file, ok: false, mistakes: [{ file, line: 1, column: 1, message }] }
  }
}

/** Returns what `diana bound` finds odd about rules. */
async function findOddities(document: RuleDocument, extensions: Extensions): Promise<readonly Finding[]> {
  const { oddities } = await import('../rehearsal/bounds/bound.ts')
  return await oddities(document, { extensions })
}

function mistakeAt(text: string, file: string, { rule, message }: Finding): Mistake {
  const { value, placeOf } = readValues(text, file)
  const rules = (value as { readonly rules?: unknown } | undefined)?.rules
  const index = Array.isArray(rules) ? rules.findIndex(one => one?.id === rule) : -1
  return { file, ...placeOf(['rules', index, 'id']), rule, message }
}

/** Throws what `diana start` would throw for a document that was read well. */
async function assertUsable(document: RuleDocument, vocabulary: Extensions, files: Files): Promise<void> {
  for (const warning of assertRules(document, vocabulary)) files.onWarning?.(warning)
  const settings = document.sections?.gateway as GatewaySettings | undefined
  await assertStartable(settings, files)
  assertProxyProtocol(settings, document.trustProxy)
  const { admin } = settings ?? {}
  if (admin) assertSafe(admin.host ?? '127.0.0.1', { ...admin, token: admin.token ?? process.env.DIANA_ADMIN_TOKEN })
}

export async function readText(input: Terminal['input']): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of input) {
    pieces.push(typeof piece === 'string' ? Buffer.from(piece) : piece)
    bytes += pieces.at(-1)!.length
    if (bytes >= mostBytes) break
  }
  return Buffer.concat(pieces).toString('utf8')
}

function tell(result: Checked, terminal: Terminal): void {
  if (result.ok) terminal.print(`${result.file}: ok, ${result.rules} ${result.rules === 1 ? 'rule' : 'rules'}`)
  for (const { rule, message } of (result.ok && result.findings) || []) {
    terminal.printError(`${result.file}: note: rule "${rule}": ${message}`)
  }
  for (const warning of (result.ok && result.warnings) || []) terminal.printError(`${result.file}: warning: ${warning}`)
  for (const mistake of result.ok ? [] : result.mistakes) {
    // no line: there was no text to find a mistake in
    if (mistake.line === 0) terminal.printError(`diana check: ${mistake.file} ${mistake.message}`)
    else terminal.print(formatMistake(mistake))
  }
}
