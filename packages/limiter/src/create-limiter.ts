import { readFile } from 'node:fs/promises'
import type { Algorithm } from './algorithms/algorithm.ts'
import { type Clock, inMicroseconds } from './common/clock.ts'
import { DEFAULT_PREFIX } from './common/redis-url.ts'
import type { Dimension } from './dimensions/dimension.ts'
import { GivenFunctions } from './dimensions/reading/given-functions.ts'
import { Engine, type EngineOptions } from './engine/engine.ts'
import { DianaError } from './errors.ts'
import { Limiter } from './limiter.ts'
import { importPlugins, mergeExtensions, pluginsNamedIn } from './reload/plugins.ts'
import { formatMistake } from './rules/mistake.ts'
import { type DocumentOptions, type Parsed, parseOptions, parseText, type Vocabulary } from './rules/parse.ts'
import type { RuleDocument } from './rules/rule.ts'
import type { StoreOptions } from './rules/schema/options.ts'
import type { Section } from './rules/schema/section.ts'
import { documentToInput } from './rules/to-input.ts'
import { hashText } from './sources/client/text.ts'
import type { Source, SourceKind } from './sources/source.ts'
import { CountingStore } from './stores/counting/client.ts'
import { fleetName, RedisRegistry } from './stores/membership/redis-registry.ts'
import { observerRegistry } from './stores/membership/registry.ts'
import { connectRedis, type RedisTarget } from './stores/redis/connection/client.ts'
import { warnOfEviction } from './stores/redis/connection/memory-policy.ts'
import { RedisStore } from './stores/redis/redis-store.ts'
import { RedisStatistics } from './stores/redis/statistics.ts'

/** A rule file's path, or the words of a rule file in code; and what is not a word of rules. */
export interface LimiterOptions extends Omit<DocumentOptions, 'store'> {
  /** Where rules are counted for the whole fleet: a URL, URLs of a Cluster, a client, or a function. */
  readonly store?: (StoreOptions & { readonly redis: RedisTarget }) | undefined
  /** Path of a rule file; the rules then come from there. */
  readonly config?: string | undefined
  /** For tests and replays. */
  readonly clock?: Clock | undefined
  /** The ways of counting that rules may name; start from the exported `algorithms` and add yours. */
  readonly algorithms?: readonly Algorithm[] | undefined
  /** The ways to tell callers apart; start from the exported `dimensions` and add yours. */
  readonly dimensions?: readonly Dimension[] | undefined
  /** The config centres that `remote` may name; start from the exported `sources` and add yours. */
  readonly sources?: readonly SourceKind[] | undefined
  /** Further sections of the rule file, for programs built around a limiter; see `documentOf` in `diana-limiter/gateway`. */
  readonly sections?: readonly Section[] | undefined
  /**
   * The socket of a counting process, with which other processes of this machine count together; see `serveCounting`. If it is
   * said how many processes they are, each has its share of the limits from the start if the counting process dies.
   */
  readonly counting?: string | { readonly socket: string; readonly processes: number } | undefined
  /** Whether this process judges no calls and only looks: no share of a limit is set aside for it. */
  readonly isObserver?: boolean | undefined
  /** How many keys are counted apart in this process; default a million. */
  readonly maxKeys?: number | undefined
}

const COUNTING_START_MS = 2000

/** Makes a limiter from a rule file or from rules in code; throws a DianaError that lists every mistake in them. */
export async function createLimiter(options: LimiterOptions): Promise<Limiter> {
  assertOptionsGiven(options)
  const { config, clock, maxKeys, algorithms, dimensions, sources, sections, counting, isObserver, ...words } = options
  assertSense(options, words)
  const text = config === undefined ? undefined : await readRules(config)
  const plugins = text === undefined ? [] : await importPlugins(pluginsNamedIn(text), config!)
  const vocabulary = { ...mergeExtensions({ algorithms, dimensions, sources }, plugins), sections }
  const given = new GivenFunctions()
  const document = applied(
    text === undefined ? parseInCode(words, vocabulary, given) : parseText(text, config!, vocabulary),
  )
  const connection = await connect(options, document)
  const place = typeof counting === 'string' ? { socket: counting, processes: undefined } : counting
  const machine = place && new CountingStore({ socket: place.socket, isObserver })
  let engine: Engine | undefined
  try {
    engine = new Engine({
      ...connection,
      machine,
      machineProcesses: place?.processes,
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
    connection?.adviseOnMemory()
    return new Limiter(engine)
  } catch (error) {
    if (engine) await engine.close()
    connection?.disconnect()
    machine?.close()
    await connection?.statistics.close()
    throw error
  }
}

/** As the file's source marks it, which reads past the mark that some editors put in front. */
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
  const { store } = options as LimiterOptions
  if (store === undefined) return
  if (typeof store !== 'object' || store === null || !('redis' in store)) {
    throw fault("store must say where Redis is, as in store: { redis: 'redis://127.0.0.1:6379' }")
  }
  if (store.redis === undefined || store.redis === null || (store.redis as unknown) === '') {
    throw fault(
      'store.redis is empty, as when an environment variable is not set: give the URL of Redis, or leave store out to ' +
        'count in this process',
    )
  }
}

function assertSense({ config, rules, maxKeys }: LimiterOptions, words: object): void {
  const fault = (message: string): DianaError => new DianaError('BAD_RULES', message)
  if (config === undefined && rules === undefined)
    throw fault('no rules: give config, the path of a rule file, or rules')
  const also = Object.keys(words)
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

/** Only where there are functions may rules name any. */
function parseInCode(words: Omit<LimiterOptions, 'config'>, vocabulary: Vocabulary, given: GivenFunctions): Parsed {
  const { store, ...rest } = inWords(words)
  const inCode = documentToInput(rest, given)
  const dimensions = given.isEmpty ? vocabulary.dimensions : [...vocabulary.dimensions, given.dimension]
  return parseOptions({ ...inCode, ...(store && { store }) }, { ...vocabulary, dimensions })
}

/** The options as a rule file would say them: a client has no word there, and stands in as an address. */
function inWords<Words extends Pick<LimiterOptions, 'store'>>(options: Words): Words {
  const { store } = options
  if (!store || typeof store.redis === 'string' || Array.isArray(store.redis)) return options
  return { ...options, store: { ...store, redis: 'redis://client' } }
}

interface Opened {
  readonly statistics: RedisStatistics
  readonly disconnect: () => void
  readonly adviseOnMemory: () => void
}

async function connect(
  { store, clock, isObserver }: LimiterOptions,
  document: RuleDocument,
): Promise<
  | (Pick<EngineOptions, 'fleet' | 'registry' | 'hasParts' | 'reconnect' | 'onReady' | 'onLost' | 'lastError'> & Opened)
  | undefined
> {
  if (!document.store) return undefined
  const { redis: urls, prefix = DEFAULT_PREFIX } = document.store
  const connection = await connectRedis(targetIn(store?.redis, urls))
  const { send, isCluster, close, reconnect, onReady, onLost, lastError } = connection
  const now = clock && inMicroseconds(clock)
  const fleet = new RedisStore(send, { prefix, isCluster, now })
  const statistics = new RedisStatistics(send, { prefix, isCluster })
  const members = new RedisRegistry(send, fleetName(prefix))
  const registry = isObserver ? observerRegistry(() => members.count()) : members
  const adviseOnMemory = (): void => void warnOfEviction(send)
  onReady?.(adviseOnMemory)
  return {
    fleet,
    registry,
    hasParts: isCluster,
    statistics,
    disconnect: close,
    reconnect,
    onReady,
    onLost,
    lastError,
    adviseOnMemory,
  }
}

/** What was given in code, but for addresses, which are taken as they were read: they may stand in the environment. */
function targetIn(given: RedisTarget | undefined, urls: readonly string[]): RedisTarget {
  if (Array.isArray(given)) return urls
  if (given !== undefined && typeof given !== 'string') return given
  return urls.length === 1 ? urls[0]! : urls
}

function remoteOf({ remote }: RuleDocument, kinds: readonly SourceKind[]): Source | undefined {
  return remote && kinds.find(({ name }) => name === remote.source)!.create(remote.address, remote.options)
}
