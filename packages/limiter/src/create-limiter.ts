import { readFile } from 'node:fs/promises'
import type { Algorithm } from './algorithms/algorithm.ts'
import type { Clock } from './common/clock.ts'
import type { Dimension } from './dimensions/dimension.ts'
import { GivenFunctions } from './dimensions/reading/given-functions.ts'
import { assertStore, type GivenStore, openStore, storeInput } from './distributed/open-store.ts'
import { Engine } from './engine/engine.ts'
import { DianaError } from './errors.ts'
import { Limiter } from './limiter.ts'
import { importPlugins, mergeExtensions, pluginsNamedIn } from './reload/plugins.ts'
import { formatMistake } from './rules/mistake.ts'
import { type DocumentOptions, type Parsed, parseOptions, parseText, type Vocabulary } from './rules/parse.ts'
import type { RuleDocument } from './rules/rule.ts'
import type { Section } from './rules/schema/section.ts'
import { documentToInput } from './rules/to-input.ts'
import { hashText } from './sources/client/text.ts'
import type { Source, SourceKind } from './sources/source.ts'
import { CountingStore } from './stores/counting/client.ts'

/** A rule file's path, or the options of a rule file in code; and the options that a rule file does not have. */
export interface LimiterOptions extends Omit<DocumentOptions, 'store'> {
  /** Where rules are counted for the whole fleet: Redis, or a store of your own. */
  readonly store?: GivenStore | undefined
  /** Path of a rule file; the rules then come from there. */
  readonly config?: string | undefined
  /** For tests and replays. */
  readonly clock?: Clock | undefined
  /** The ways of counting that rules may name; start from the exported `algorithms` and add yours. */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** The ways to distinguish callers; start from the exported `dimensions` and add yours. */
  readonly dimensions?: readonly Dimension[] | undefined
  /** The config centers that `remote` may name; start from the exported `sources` and add yours. */
  readonly sources?: readonly SourceKind[] | undefined
  /** Further sections of the rule file, for programs built around a limiter; see `documentOf` in `diana-limiter/gateway`. */
  readonly sections?: readonly Section[] | undefined
  /**
   * The socket of a counting process, with which other processes of this machine count together; see `serveCounting`. If the
   * number of processes is given, each has its share of the limits from the start if the counting process dies.
   */
  readonly counting?: string | { readonly socket: string; readonly processes: number } | undefined
  /** Whether this process decides no calls and only reads: no share of a limit is reserved for it. */
  readonly isObserver?: boolean | undefined
  /** How many keys are counted separately in this process; default a million. */
  readonly maxKeys?: number | undefined
}

const COUNTING_START_MS = 2000

/** Makes a limiter from a rule file or from rules in code; throws a DianaError that lists every mistake in them. */
export async function createLimiter(options: LimiterOptions): Promise<Limiter> {
  assertOptionsGiven(options)
  const { config, clock, maxKeys, algorithms, dimensions, sources, sections, counting, isObserver, ...rest } = options
  assertSense(options, rest)
  const text = config === undefined ? undefined : await readRules(config)
  const plugins = text === undefined ? [] : await importPlugins(pluginsNamedIn(text), config!)
  const vocabulary = { ...mergeExtensions({ algorithms, dimensions, sources }, plugins), sections }
  const given = new GivenFunctions()
  const document = applied(
    text === undefined ? parseInCode(rest, vocabulary, given) : parseText(text, config!, vocabulary),
  )
  const connection = document.store && (await openStore(options.store, document.store, { clock, isObserver }))
  const address = typeof counting === 'string' ? { socket: counting, processes: undefined } : counting
  const machine = address && new CountingStore({ socket: address.socket, isObserver })
  let engine: Engine | undefined
  try {
    engine = new Engine({
      ...connection,
      machine,
      machineProcesses: address?.processes,
      algorithms: vocabulary.algorithms,
      dimensions: [...vocabulary.dimensions, given.dimension],
      given,
      vocabulary,
      document,
      file: text === undefined ? undefined : { path: config!, version: versionOf(text), text },
      remote: remoteOf(document, vocabulary.sources),
      clock,
      maxKeys,
    })
    await machine?.waitUntilConnected(COUNTING_START_MS)
    await engine.start()
    connection?.adviseOnMemory?.()
    return new Limiter(engine)
  } catch (error) {
    if (engine) await engine.close()
    connection?.disconnect()
    machine?.close()
    await connection?.statistics?.close()
    throw error
  }
}

/** As the file's source computes it, which ignores the byte order mark that some editors write. */
function versionOf(text: string): string {
  return hashText(text.replace(/^\uFEFF/, ''))
}

function assertOptionsGiven(options: unknown): void {
  const fault = (message: string): DianaError => new DianaError('BAD_RULES', message)
  if (typeof options === 'string') {
    throw fault(`createLimiter takes options: write createLimiter({ config: ${JSON.stringify(options)} })`)
  }
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw fault(
      "createLimiter takes options: write createLimiter({ config: 'diana.yaml' }) or createLimiter({ rules })",
    )
  }
  assertStore((options as LimiterOptions).store)
}

function assertSense({ config, rules, maxKeys }: LimiterOptions, others: object): void {
  const fault = (message: string): DianaError => new DianaError('BAD_RULES', message)
  if (config === undefined && rules === undefined)
    throw fault('no rules: give config, the path of a rule file, or rules')
  const also = Object.keys(others)
  if (config !== undefined && also.length > 0) {
    throw fault(`${also.join(', ')}: the rule file says this when config is given; write it there, or leave config out`)
  }
  if (maxKeys !== undefined && !(Number.isSafeInteger(maxKeys) && maxKeys > 0)) {
    throw fault(`maxKeys must be a whole number of 1 or more, not ${maxKeys}`)
  }
}

async function readRules(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((cause: NodeJS.ErrnoException) => {
    throw new DianaError('BAD_RULES', `${path}: cannot be read (${cause.code}); check the path`, { cause })
  })
}

function applied(parsed: Parsed): RuleDocument {
  if (parsed.document) return parsed.document
  throw new DianaError('BAD_RULES', parsed.mistakes.map(formatMistake).join('\n'))
}

/** Rules may name functions only if there are any. */
function parseInCode(options: Omit<LimiterOptions, 'config'>, vocabulary: Vocabulary, given: GivenFunctions): Parsed {
  const { store, ...rest } = options
  const inCode = documentToInput(rest, given)
  const dimensions = given.isEmpty ? vocabulary.dimensions : [...vocabulary.dimensions, given.dimension]
  return parseOptions({ ...inCode, ...(store && { store: storeInput(store) }) }, { ...vocabulary, dimensions })
}

function remoteOf({ remote }: RuleDocument, kinds: readonly SourceKind[]): Source | undefined {
  return remote && kinds.find(({ name }) => name === remote.source)!.create(remote.address, remote.options)
}
