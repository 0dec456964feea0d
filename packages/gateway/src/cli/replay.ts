import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { DianaError, type RuleDocument } from 'diana-limiter'
import { type Extensions, importPlugins, mergeExtensions, pluginsNamedIn } from 'diana-limiter/gateway'
import { formatMistake, parseText } from 'diana-limiter/schema'
import { CliError, type ExitCode, type Terminal } from '../process/terminal.ts'
import { FormatError } from '../replay/formats/choose.ts'
import { FieldMapError } from '../replay/formats/field-map.ts'
import { LogError, type LogSource, openLog } from '../replay/reading/log-chunks.ts'
import { replay } from '../replay/replay.ts'
import { ConditionError, failureOf, parseCondition } from '../replay/report/fail-if.ts'
import { htmlPage } from '../replay/report/page/html-page.ts'
import { Progress } from '../replay/report/progress.ts'
import { reportOf } from '../replay/report/report.ts'
import { terminalLines } from '../replay/report/terminal.ts'
import { Verification } from '../replay/report/verification.ts'
import { type Suggestion, suggestedFile, suggestionLines, suggestLimits } from '../replay/suggest/suggest.ts'
import { gatewaySection } from '../settings/gateway-settings.ts'
import { loadPlugins, readText } from './check.ts'
import type { Arguments, Command } from './command.ts'

/** `diana replay`: what would these rules have done to the calls of a log? */
export const replayCommand: Command = {
  usage:
    "RULES LOG… [--format F] [--against OLD] [--fail-if 'refused > 0.1%']… [--suggest [--suggest-to FILE]] [--json] [--html FILE] …",
  details: [
    '  RULES               a rule file',
    '  LOG                 an access log, plain or packed (.gz, .zst); - is standard input; several are merged by time',
    '  --format F          the name of a format, or the text of nginx’s log_format or Apache’s LogFormat; default: auto',
    '  --fields MAP        where JSON lines have what: time=ts,ip=client.addr,path=url,status=code,duration.ms=took,…',
    '  --user-as NAME      the dimension that the user of the log is, such as account',
    '  --since, --until T  only calls in between, such as 2026-11-16T08:00:00Z',
    '  --against OLD       another rule file: shows the difference on the same calls',
    "  --fail-if COND      exit 1 if it holds: 'refused > 0.1%', 'RULE.refused > 100', 'RULE.callers > 3'; may be repeated",
    '  --suggest           suggest a limit for each rule from what callers have done',
    '  --by NAME/PERIOD    with --suggest and without RULES: a dimension to count by, such as ip/m; may be repeated',
    '  --suggest-to FILE   write the suggested rules, in shadow mode',
    '  --verify            compare with what the gateway decided, call by call, in its access log with replay:',
    '  --json              print the report as JSON',
    '  --html FILE         write the report as a page',
    '  --max-callers N     how many callers of a rule are counted one by one at one time; default: 100000',
    '  --plugin FILE       a module whose algorithms and dimensions the rules may name; may be repeated',
  ],
  options: {
    format: { type: 'string' },
    fields: { type: 'string' },
    'user-as': { type: 'string' },
    since: { type: 'string' },
    until: { type: 'string' },
    against: { type: 'string' },
    'fail-if': { type: 'string', multiple: true },
    suggest: { type: 'boolean' },
    by: { type: 'string', multiple: true },
    'suggest-to': { type: 'string' },
    verify: { type: 'boolean' },
    json: { type: 'boolean' },
    html: { type: 'string' },
    'max-callers': { type: 'string' },
    plugin: { type: 'string', multiple: true },
  },
  async run(args, terminal) {
    try {
      return await run(args, terminal)
    } catch (error) {
      if (error instanceof FormatError || error instanceof FieldMapError || error instanceof ConditionError) {
        throw new CliError(error instanceof ConditionError ? 2 : 1, error.message)
      }
      if (error instanceof LogError) throw new CliError(1, error.message)
      throw error
    }
  },
}

async function run({ words, options }: Arguments, terminal: Terminal): Promise<ExitCode> {
  // most of what is read is garbage soon: without this the heap grows to twice of what is needed
  setFlagsFromString('--heap-growing-percent=60')
  const by = listOf(options.by)
  const logNames = by.length > 0 ? words : words.slice(1)
  if (by.length === 0 && words.length === 0) throw new CliError(2, 'a rule file and a log are needed')
  if (logNames.length === 0) throw new CliError(2, 'a log is needed; - is standard input')
  if (logNames.indexOf('-') !== logNames.lastIndexOf('-'))
    throw new CliError(2, 'standard input (-) can be given only once')
  const conditions = listOf(options['fail-if']).map(parseCondition)
  const times = { since: momentOf(options.since, '--since'), until: momentOf(options.until, '--until') }
  const maxKeys = wholeNumberOf(options['max-callers'])
  const extensions = mergeExtensions({}, await loadPlugins(listOf(options.plugin)))
  const documents = [by.length > 0 ? countingRules(by, extensions) : await readRules(words[0]!, extensions)]
  if (options.against !== undefined) documents.push(await readRules(String(options.against), extensions))
  const logs: LogSource[] = []
  for (const name of logNames) logs.push(await openLog(name, terminal.input))
  const progress = new Progress(logs, text => process.stderr.write(text))
  const shows = terminal.isScreen === true && process.stderr.isTTY === true
  const verification = options.verify === true ? new Verification() : undefined
  const replayed = await replay({
    onVerdict: verification?.onVerdict,
    ...{ documents, logs, extensions, maxKeys, ...times },
    ...{ format: textOf(options.format), fields: textOf(options.fields), userAs: textOf(options['user-as']) },
    onProgress: lines => shows && progress.show(lines),
  })
  if (shows) progress.clear()
  const report = reportOf(replayed)
  const days = Math.max(0, replayed.to - replayed.from) / 86_400e6
  const wantsLimits = options.suggest === true || by.length > 0 || options['suggest-to'] !== undefined
  const suggestions = wantsLimits ? suggestLimits(replayed.judged[0]!.judge.rules, days) : []
  await writeFiles(options, htmlPage.bind(undefined, report), suggestions, documents[0]!)
  if (options.json === true) terminal.print(JSON.stringify({ ...report, ...(wantsLimits && { suggestions }) }, null, 2))
  else for (const line of [...terminalLines(report), ...suggestionLines(suggestions)]) terminal.print(line)
  const failures = conditions.flatMap(condition => failureOf(condition, report) ?? [])
  if (verification) {
    terminal.print(`verified: ${verification.calls} calls, ${verification.differences} differences`)
    for (const line of verification.first) terminal.print(`  ${line}`)
    if (verification.calls === 0) failures.push('--verify needs an access log that the gateway wrote with replay:')
    if (verification.differences > 0) failures.push(`${verification.differences} calls were decided in another way`)
  }
  if (report.log.lines > 0 && report.calls === 0 && report.log.from === undefined) {
    failures.push(report.log.bad > 0 ? 'no line of the log could be read' : 'no call of the log is in the given time')
  }
  for (const failure of failures) terminal.printError(`diana replay: ${failure}`)
  return failures.length > 0 ? 1 : 0
}

async function writeFiles(
  options: Arguments['options'],
  page: () => string,
  suggestions: readonly Suggestion[],
  document: RuleDocument,
): Promise<void> {
  const write = async (name: string, text: string): Promise<void> => {
    await writeFile(name, text).catch((error: NodeJS.ErrnoException) => {
      throw new CliError(1, `${name} cannot be written (${error.code}); check the path`)
    })
  }
  if (options.html !== undefined) await write(String(options.html), page())
  if (options['suggest-to'] !== undefined)
    await write(String(options['suggest-to']), suggestedFile(suggestions, document))
}

async function readRules(file: string, extensions: Extensions): Promise<RuleDocument> {
  const text = await readText(createReadStream(file)).catch((error: NodeJS.ErrnoException) => {
    throw new CliError(1, `${file} cannot be read (${error.code}); check the path`)
  })
  const plugins = await importPlugins(pluginsNamedIn(text), file)
  const vocabulary = { ...mergeExtensions(extensions, plugins), sections: [gatewaySection] }
  const { document, mistakes } = parseText(text, file, vocabulary)
  if (document === undefined) throw new DianaError('BAD_RULES', mistakes.map(formatMistake).join('\n'))
  return document
}

function countingRules(by: readonly string[], extensions: Extensions): RuleDocument {
  const { document, mistakes } = parseText(rulesForDimensions(by), '--by', { ...extensions, sections: [] })
  if (document === undefined) throw new CliError(2, mistakes.map(({ message }) => `--by: ${message}`).join('; '))
  return document
}

function listOf(option: Arguments['options'][string]): string[] {
  return Array.isArray(option) ? option.map(String) : []
}

function textOf(option: Arguments['options'][string]): string | undefined {
  return option === undefined ? undefined : String(option)
}

function momentOf(option: Arguments['options'][string], name: string): number | undefined {
  if (option === undefined) return undefined
  const ms = Date.parse(String(option))
  if (Number.isNaN(ms)) throw new CliError(2, `${name} must be a time such as 2026-11-16T08:00:00Z, not "${option}"`)
  return ms * 1000
}

function wholeNumberOf(option: Arguments['options'][string]): number | undefined {
  if (option === undefined) return undefined
  const value = Number(option)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new CliError(2, `--max-callers must be a whole number of 1 or more, not "${option}"`)
}

/** Writes a rule file that only counts: one rule per dimension and period, such as `ip/m`; limits so high that nothing is refused. */
function rulesForDimensions(words: readonly string[]): string {
  const rules = words.map(word => {
    const slash = word.lastIndexOf('/')
    const [by, period] = slash < 0 ? [word, 'm'] : [word.slice(0, slash), word.slice(slash + 1)]
    const id = `per-${by.replaceAll(/[^\w-]+/g, '-')}`
    return {
      id,
      ...(by === 'all' ? { id: 'all-calls' } : { by: by.split('+') }),
      limit: `10000000/${period}`,
      whenFull: 'shadow',
    }
  })
  return JSON.stringify({ rules })
}
