import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { DianaError } from 'diana-limiter'
import { type Extensions, mergeExtensions } from 'diana-limiter/gateway'
import { formatMistake, readValues } from 'diana-limiter/schema'
import { CliError, type ExitCode, type Terminal } from '../process/terminal.ts'
import { type CaseBook, openCases } from '../rehearsal/cases/load-cases.ts'
import { isMap } from '../rehearsal/cases/reader.ts'
import { Coverage } from '../rehearsal/coverage/coverage.ts'
import { type MutationResult, mutate } from '../rehearsal/coverage/mutate.ts'
import { readRuleSet } from '../rehearsal/load-rules.ts'
import { recordCases } from '../rehearsal/record/record.ts'
import {
  coverageLines,
  junitReport,
  mutationLines,
  type SetResult,
  tapReport,
  terminalReport,
  totalsOf,
} from '../rehearsal/report.ts'
import { countsInStore, namesOf, type RuleSet } from '../rehearsal/run/rule-set.ts'
import { runCases } from '../rehearsal/run/run-case.ts'
import { watchFiles } from '../rehearsal/watch-files.ts'
import { FormatError } from '../replay/formats/choose.ts'
import { LogError } from '../replay/reading/log-chunks.ts'
import { serveSection } from '../serve/serve-settings.ts'
import { gatewaySection } from '../settings/gateway-settings.ts'
import { loadPlugins, readText } from './check.ts'
import type { Arguments, Command } from './command.ts'

const sections = [gatewaySection, serveSection]

/** `diana test`: do rules answer calls as these cases say? */
export const test: Command = {
  usage: '[RULES] CASES… [--coverage] [--mutate] [--tap | --junit FILE | --json] [--watch] [--only TEXT] …',
  details: [
    '  RULES               a rule file; may be left out if the files of cases name theirs (rules: FILE)',
    '  CASES               files of cases; docs/testing.md explains them',
    '  --coverage          show which rules, levels, plans and answers no case reaches',
    '  --mutate            change limits, periods, dimensions and matches one at a time, and show what no case notices',
    '  --least-score N     with --mutate: exit 1 if less than N percent of the changes are noticed',
    '  --only TEXT         run only the cases whose names contain this',
    '  --tap               print results in the Test Anything Protocol',
    '  --junit FILE        write results as the XML of JUnit, too',
    '  --json              print results as JSON',
    '  --watch             run again whenever a file changes, until it is interrupted',
    '  --record LOG        make cases from an access log, or from the log of live traffic (tail -f access.log | …, LOG is -), and print them',
    '  --format F          with --record: the format of the log, as for diana replay',
    '  --most N            with --record: the most calls; default: 1000',
    '  --plugin FILE       a module whose algorithms and dimensions the rules may name; may be repeated',
    '',
    'exit code: 0 if all cases pass, 1 if a case fails or a file has mistakes, 2 if the command was used wrongly',
  ],
  options: {
    coverage: { type: 'boolean' },
    mutate: { type: 'boolean' },
    'least-score': { type: 'string' },
    only: { type: 'string' },
    tap: { type: 'boolean' },
    junit: { type: 'string' },
    json: { type: 'boolean' },
    watch: { type: 'boolean' },
    record: { type: 'string' },
    format: { type: 'string' },
    most: { type: 'string' },
    plugin: { type: 'string', multiple: true },
  },
  async run(args, terminal) {
    const { words, options } = args
    assertTogether(options)
    if (options.record !== undefined) return await record(args, terminal)
    if (words.length === 0) throw new CliError(2, 'no file of cases given: diana test RULES CASES')
    if (options.tap === true && options.json === true) throw new CliError(2, 'choose one of --tap and --json')
    const leastScore = numberOf(options['least-score'], '--least-score', 0, 100)
    const extensions = mergeExtensions({}, await loadPlugins(listOf(options.plugin)))
    if (options.watch !== true)
      return await runOnce(words, args, { extensions, leastScore, terminal, files: new Set() })
    for (;;) {
      const files = new Set(words)
      try {
        await runOnce(words, args, { extensions, leastScore, terminal, files })
      } catch (error) {
        if (!(error instanceof CliError || error instanceof DianaError)) throw error
        terminal.printError(error.message)
      }
      terminal.printError(`watching ${files.size === 1 ? '1 file' : `${files.size} files`}; interrupt with Ctrl-C`)
      await watchFiles([...files])
    }
  },
}

interface Setting {
  readonly extensions: Extensions
  readonly leastScore: number | undefined
  readonly terminal: Terminal
  /** Gets the files that are read, also those with mistakes. */
  readonly files: Set<string>
}

/** The options that have no effect without another one. */
const NEEDED = { 'least-score': 'mutate', format: 'record', most: 'record' } as const
const NOT_RECORDED = ['coverage', 'mutate', 'only', 'tap', 'junit', 'json', 'watch'] as const

/** Throws for options that would have no effect. */
function assertTogether(options: Arguments['options']): void {
  for (const [name, other] of Object.entries(NEEDED)) {
    if (options[name] !== undefined && options[other] === undefined) throw new CliError(2, `--${name} needs --${other}`)
  }
  if (options.record === undefined) return
  const useless = NOT_RECORDED.find(name => options[name] !== undefined)
  if (useless !== undefined) throw new CliError(2, `--${useless} has no effect with --record: leave it out`)
}

/** A file of cases with the rules that it is run against. */
interface Loaded {
  readonly book: CaseBook
  readonly rules: RuleSet
}

async function runOnce(
  words: readonly string[],
  { options }: Arguments,
  { extensions, leastScore, terminal, files }: Setting,
): Promise<ExitCode> {
  const began = performance.now()
  const loaded = await load(words, extensions, files)
  const only = options.only === undefined ? undefined : String(options.only)
  const sets = loaded.map(({ book, rules }) => {
    const { cases, mistakes } = book.read(namesOf(rules.document))
    const more = countsInStore(rules.document)
      ? []
      : cases
          .filter(({ outages }) => outages.length > 0)
          .map(({ place }) => ({
            ...place,
            message: `this case has an outage, and ${rules.file} counts in no store: add store: to the rules, or leave store out`,
          }))
    const all = [...mistakes, ...more]
    if (all.length > 0) throw new DianaError('BAD_RULES', all.map(formatMistake).join('\n'))
    return { book, rules, cases: only === undefined ? cases : cases.filter(({ name }) => name.includes(only)) }
  })
  if (sets.every(({ cases }) => cases.length === 0)) {
    throw new CliError(1, only === undefined ? 'these files have no cases' : `no case has "${only}" in its name`)
  }
  const results: SetResult[] = []
  const coverages: Coverage[] = []
  const mutations: MutationResult[] = []
  for (const { book, rules, cases } of sets) {
    const known = coverages.find(one => one.rules === rules.file)
    const coverage = options.coverage === true ? (known ?? new Coverage(rules)) : undefined
    if (coverage && known === undefined) {
      await coverage.open()
      coverages.push(coverage)
    }
    results.push({ rules: rules.file, cases: book.file, results: await runCases(rules, cases, { observer: coverage }) })
  }
  const { failed } = totalsOf(results)
  if (options.mutate === true && failed > 0) terminal.printError('diana test: --mutate needs cases that pass')
  else if (options.mutate === true) {
    for (const file of new Set(sets.map(({ rules }) => rules.file))) {
      const own = sets.filter(({ rules }) => rules.file === file)
      mutations.push(
        await mutate(
          own[0]!.rules,
          own.flatMap(({ cases }) => cases),
        ),
      )
    }
  }
  const seconds = (performance.now() - began) / 1000
  if (options.junit !== undefined) await write(String(options.junit), junitReport(results))
  if (options.json === true) terminal.print(JSON.stringify(jsonOf(results, coverages, mutations), null, 2))
  else {
    const more = [...coverages.flatMap(coverageLines), ...mutations.flatMap(mutationLines)]
    const lines =
      options.tap === true
        ? [...tapReport(results), ...more.map(line => `# ${line}`)]
        : [...terminalReport(results, seconds), ...more]
    for (const line of lines) terminal.print(line)
  }
  const score = scoreOf(mutations)
  const isBelow = leastScore !== undefined && score !== undefined && score < leastScore
  if (isBelow)
    terminal.printError(`diana test: ${score.toFixed(1)} % of the changes are noticed, less than ${leastScore} %`)
  return failed > 0 || isBelow ? 1 : 0
}

function scoreOf(mutations: readonly MutationResult[]): number | undefined {
  const all = mutations.reduce((sum, { changes }) => sum + changes, 0)
  const missed = mutations.reduce((sum, { unnoticed }) => sum + unnoticed.length, 0)
  return all === 0 ? undefined : ((all - missed) / all) * 100
}

/** Loads rules and cases. The first file is the rules if it has rules; files of cases may name their own. */
async function load(words: readonly string[], extensions: Extensions, files: Set<string>): Promise<Loaded[]> {
  const known = new Map<string, RuleSet>()
  const rulesOf = async (file: string): Promise<RuleSet> => {
    files.add(file)
    const set = known.get(file) ?? (await readRuleSet(await textOf(file), file, { extensions, sections }))
    known.set(file, set)
    return set
  }
  const isRules = await hasRules(words[0]!)
  const [given, cases] = isRules ? [words[0]!, words.slice(1)] : [undefined, words]
  if (cases.length === 0)
    throw new CliError(2, `${given} is a rule file, and no file of cases is given: diana test RULES CASES`)
  const loaded: Loaded[] = []
  for (const file of cases) {
    const book = await openCases(file).catch((error: NodeJS.ErrnoException) => {
      throw new CliError(1, `${file} cannot be read (${error.code ?? error.message}); check the path`)
    })
    for (const one of book.files) files.add(one)
    if (book.mistakes.length > 0) throw new DianaError('BAD_RULES', book.mistakes.map(formatMistake).join('\n'))
    const rules = given ?? book.rules
    if (rules === undefined)
      throw new CliError(2, `no rule file given for ${file}: diana test RULES CASES, or write rules: FILE into it`)
    loaded.push({ book, rules: await rulesOf(rules) })
  }
  return loaded
}

async function hasRules(file: string): Promise<boolean> {
  const { value, mistakes } = readValues(await textOf(file), file)
  if (mistakes.length > 0) throw new DianaError('BAD_RULES', mistakes.map(formatMistake).join('\n'))
  if (!isMap(value)) {
    const message = 'this is neither a rule file nor a file of cases: write rules: or cases: into it'
    throw new DianaError('BAD_RULES', formatMistake({ file, line: 1, column: 1, message }))
  }
  return Array.isArray(value.rules) || !('cases' in value || 'include' in value || 'callers' in value)
}

async function textOf(file: string): Promise<string> {
  return await readText(createReadStream(file)).catch((error: NodeJS.ErrnoException) => {
    throw new CliError(1, `${file} cannot be read (${error.code}); check the path`)
  })
}

async function write(file: string, lines: readonly string[]): Promise<void> {
  await writeFile(file, `${lines.join('\n')}\n`).catch((error: NodeJS.ErrnoException) => {
    throw new CliError(1, `${file} cannot be written (${error.code}); check the path`)
  })
}

async function record({ words, options }: Arguments, terminal: Terminal): Promise<ExitCode> {
  if (words.length !== 1) throw new CliError(2, 'give one rule file with --record: diana test RULES --record LOG')
  const extensions = mergeExtensions({}, await loadPlugins(listOf(options.plugin)))
  const rules = await readRuleSet(await textOf(words[0]!), words[0]!, { extensions, sections })
  const most = numberOf(options.most, '--most', 1, 100_000) ?? 1000
  const format = options.format === undefined ? undefined : String(options.format)
  const lines = await recordCases(rules, { log: String(options.record), format, most, input: terminal.input }).catch(
    (error: Error) => {
      throw error instanceof LogError || error instanceof FormatError ? new CliError(1, error.message) : error
    },
  )
  for (const line of lines) terminal.print(line)
  return 0
}

function jsonOf(
  sets: readonly SetResult[],
  coverages: readonly Coverage[],
  mutations: readonly MutationResult[],
): object {
  return {
    ...totalsOf(sets),
    sets: sets.map(({ rules, cases, results }) => ({
      rules,
      cases,
      results: results.map(({ case: { name, place }, calls, failures }) => ({
        name,
        place,
        calls,
        ok: failures.length === 0,
        failures,
      })),
    })),
    ...(coverages.length > 0 && { coverage: coverages.map(one => ({ rules: one.rules, ...one.result() })) }),
    ...(mutations.length > 0 && { mutations }),
  }
}

function listOf(option: Arguments['options'][string]): string[] {
  return Array.isArray(option) ? option.map(String) : []
}

function numberOf(option: Arguments['options'][string], name: string, least: number, most: number): number | undefined {
  if (option === undefined) return undefined
  const value = Number(option)
  if (Number.isFinite(value) && value >= least && value <= most) return value
  throw new CliError(2, `${name} must be a number from ${least} to ${most}, not "${option}"`)
}
