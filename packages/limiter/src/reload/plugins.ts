import nodeModule from 'node:module'
import { dirname, isAbsolute, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Algorithm } from '../algorithms/algorithm.ts'
import { assertRegularFile } from '../common/regular-file.ts'
import type { Dimension } from '../dimensions/dimension.ts'
import { DianaError } from '../errors.ts'
import { isMap } from '../rules/is-map.ts'
import type { SourceKind } from '../sources/source.ts'

/** The exports of a plugin: lists of algorithms, dimensions and sources. */
export interface Plugin {
  readonly algorithms?: readonly Algorithm[] | undefined
  readonly dimensions?: readonly Dimension[] | undefined
  readonly sources?: readonly SourceKind[] | undefined
}

/** All algorithms, dimensions and sources that rules may name. */
export type Extensions = { readonly [Kind in keyof Plugin]-?: NonNullable<Plugin[Kind]> }

/** The method that a member of each kind must have. */
const makers: Readonly<Record<keyof Extensions, string>> = {
  algorithms: 'meter',
  dimensions: 'read',
  sources: 'create',
}
const kinds = Object.keys(makers) as (keyof Extensions)[]

/** Returns the members, followed by those of plugins. */
export function addPlugins({ algorithms, dimensions, sources }: Extensions, plugins: readonly Plugin[]): Extensions {
  return {
    algorithms: gather('algorithms', algorithms, plugins),
    dimensions: gather('dimensions', dimensions, plugins),
    sources: gather('sources', sources, plugins),
  }
}

function gather<Member extends { readonly name: string }>(
  kind: keyof Extensions,
  first: readonly Member[],
  plugins: readonly Plugin[],
): Member[] {
  // a plugin may be named several times, and is loaded once
  const members = new Set([
    ...first,
    ...plugins.flatMap(plugin => (plugin[kind] ?? []) as unknown as readonly Member[]),
  ])
  const names = new Set<string>()
  for (const { name } of members) {
    if (names.has(name)) throw new DianaError('BAD_RULES', `two ${kind} are named ${name}: give one another name`)
    names.add(name)
  }
  return [...members]
}

/** Imports plugins; a path is relative to `from`, the file that names them, and a bare name is a package. */
export async function importPlugins(names: readonly string[], from: string): Promise<Plugin[]> {
  return await Promise.all(names.map(name => importPlugin(name, from)))
}

async function importPlugin(name: string, from: string): Promise<Plugin> {
  const module = await importModule(name, from).catch((cause: unknown) => {
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    throw new DianaError('BAD_RULES', `${from}: the plugin ${name} cannot be loaded: ${reason}`, { cause })
  })
  const given = kinds.filter(kind => module[kind] !== undefined)
  const fault =
    given.length === 0
      ? `exports none of ${kinds.join(', ')}: export a list of yours`
      : given.map(kind => faultIn(kind, module[kind])).find(found => found !== undefined)
  if (fault !== undefined) throw new DianaError('BAD_RULES', `${from}: the plugin ${name} ${fault}`)
  return module
}

async function importModule(name: string, from: string): Promise<Record<string, unknown>> {
  if (name.startsWith('.') || isAbsolute(name)) {
    const path = resolve(dirname(from), name)
    // importing a pipe would wait forever
    await assertRegularFile(path)
    return await importAsIs(pathToFileURL(path).href)
  }
  try {
    return await importAsIs(pathToFileURL(nodeModule.createRequire(resolve(from)).resolve(name)).href)
  } catch (error) {
    // a package for `import` alone is not found as one for `require`
    if ((error as NodeJS.ErrnoException | undefined)?.code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw error
    return await importAsIs(name)
  }
}

/** Imports a module that is known only at run time: bundlers leave it to Node. */
function importAsIs(name: string): Promise<Record<string, unknown>> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ name)
}

function faultIn(kind: keyof Extensions, list: unknown): string | undefined {
  if (!Array.isArray(list)) return `exports ${kind} that are no list: write export const ${kind} = [yours]`
  const isMember = (one: unknown): boolean =>
    isMap(one) && typeof one.name === 'string' && typeof one[makers[kind]] === 'function'
  const bad = list.findIndex(one => !isMember(one))
  if (bad < 0) return undefined
  return `exports ${kind}[${bad}], which is none: it needs a name and a function ${makers[kind]}`
}
