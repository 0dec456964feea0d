import { readFile } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { algorithms as ownAlgorithms } from '../algorithms/index.ts'
import { dimensions as ownDimensions } from '../dimensions/index.ts'
import { GivenFunctions } from '../dimensions/reading/given-functions.ts'
import { Engine } from '../engine/engine.ts'
import { DianaError } from '../errors.ts'
import { Limiter } from '../limiter.ts'
import { addPlugins, importPlugins, type Plugin } from '../reload/plugins.ts'
import { formatMistake } from '../rules/mistake.ts'
import { type Parsed, parseOptions, type Vocabulary } from '../rules/parse.ts'
import type { RuleDocument } from '../rules/rule.ts'
import { documentToInput } from '../rules/to-input.ts'
import type { Source, SourceKind } from '../sources/source.ts'
import type { CountingStore } from '../stores/counting/client.ts'
import { storeInput } from './given-store.ts'
import type { LimiterOptions } from './limiter-options.ts'
import type { OpenedStore } from './open-store.ts'

const COUNTING_START_MS = 2000

/** Starts a limiter by options that make sense. YAML, Redis and the counting process are loaded only if the options need them. */
export async function startLimiter(
  options: LimiterOptions,
  { storeWaitMs }: { readonly storeWaitMs?: number } = {},
): Promise<Limiter> {
  const {
    config,
    clock,
    maxKeys,
    algorithms,
    dimensions,
    sources,
    sections,
    counting,
    isObserver,
    maxStoreWaitMs,
    maxWaitMs,
    ...rest
  } = options
  assertSense(options, rest)
  const text = config === undefined ? undefined : await readRules(config)
  const plugins = text === undefined ? [] : await pluginsOf(text, config!)
  const extensions = {
    algorithms: algorithms ?? ownAlgorithms,
    dimensions: dimensions ?? ownDimensions,
    // rules in code that name no config center need none
    sources: sources ?? (config === undefined && rest.remote === undefined ? [] : await loadSources()),
  }
  const vocabulary = { ...addPlugins(extensions, plugins), sections }
  const isOwnVocabulary = [algorithms, dimensions, sources].every(given => given === undefined) && plugins.length === 0
  const given = new GivenFunctions()
  const document = applied(
    text === undefined ? parseInCode(rest, vocabulary, given) : await parseFile(text, config!, vocabulary),
  )
  const connection = await connect(options, document, vocabulary.algorithms)
  const address = typeof counting === 'string' ? { socket: counting, processes: undefined } : counting
  const machine = address && (await openCounting(address.socket, isObserver))
  let engine: Engine | undefined
  try {
    const isShared = connection !== undefined || machine !== undefined
    engine = new Engine({
      ...connection,
      share: isShared ? (await import('../engine/create-shared-stores.ts')).createSharedStores : undefined,
      machine,
      machineProcesses: address?.processes,
      maxStoreWaitMs: atTheStart(maxStoreWaitMs, document),
      maxWaitMs: atTheStart(maxWaitMs, document),
      algorithms: vocabulary.algorithms,
      dimensions: [...vocabulary.dimensions, given.dimension],
      given,
      vocabulary,
      isOwnVocabulary,
      document,
      file: text === undefined ? undefined : { path: config!, version: await versionOf(text), text },
      remote: remoteOf(document, vocabulary.sources),
      clock,
      maxKeys,
      isObserver,
    })
    await machine?.waitUntilConnected(COUNTING_START_MS)
    const started = engine.start()
    // without a store there is nothing to wait for, and some runtimes allow no timers before the first request
    const isBrief = storeWaitMs !== undefined && connection !== undefined
    await (isBrief ? Promise.race([started, pause(storeWaitMs, undefined, { ref: false })]) : started)
    connection?.adviseOnMemory?.()
    return new Limiter(engine)
  } catch (error) {
    if (engine) await engine.close()
    connection?.disconnect()
    machine?.close()
    throw error
  }
}

/** As the file's source computes it, which ignores the byte order mark that some editors write. */
async function versionOf(text: string): Promise<string> {
  const { hashText } = await import('../sources/client/text.ts')
  return hashText(text.replace(/^\uFEFF/, ''))
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

async function pluginsOf(text: string, file: string): Promise<Plugin[]> {
  const { pluginsNamedIn } = await import('../reload/plugin-names.ts')
  return await importPlugins(pluginsNamedIn(text), file)
}

async function loadSources(): Promise<readonly SourceKind[]> {
  const { sources } = await import('../sources/index.ts')
  return sources
}

async function parseFile(text: string, file: string, vocabulary: Vocabulary): Promise<Parsed> {
  const { parseText } = await import('../rules/parse-text.ts')
  return parseText(text, file, vocabulary)
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

async function connect(
  { store, clock, isObserver }: LimiterOptions,
  document: RuleDocument,
  algorithms: Vocabulary['algorithms'],
): Promise<OpenedStore | undefined> {
  if (!document.store) return undefined
  const { openStore } = await import('./open-store.ts')
  return await openStore(store, document.store, { clock, isObserver, algorithms })
}

async function openCounting(socket: string, isObserver: boolean | undefined): Promise<CountingStore> {
  const { CountingStore: Store } = await import('../stores/counting/client.ts')
  return new Store({ socket, isObserver })
}

function remoteOf({ remote }: RuleDocument, kinds: readonly SourceKind[]): Source | undefined {
  return remote && kinds.find(({ name }) => name === remote.source)!.create(remote.address, remote.options)
}

/** Returns a number; one that depends on the sections of the rule file is read from the first document. */
function atTheStart(
  given: number | ((sections: Readonly<Record<string, unknown>>) => number) | undefined,
  { sections = {} }: RuleDocument,
): number | undefined {
  return typeof given === 'function' ? given(sections) : given
}
