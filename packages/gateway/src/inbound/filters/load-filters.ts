import { createRequire } from 'node:module'
import { isAbsolute, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DianaError } from 'diana-limiter'
import { assertRegularFile } from 'diana-limiter/gateway'
import type { FastifyInstance } from 'fastify'
import type { FilterSettings } from '../../settings/routes/filter-settings.ts'
import type { FilterPlugin, FilterSurroundings } from './filter.ts'
import { filters } from './index.ts'

type AnyPlugin = (app: FastifyInstance, options: object, done: (error?: Error) => void) => unknown

/** Loads the filters that a config names, in its order: built-in ones, modules beside the file, or packages. */
export async function loadFilters(
  named: readonly FilterSettings[],
  surroundings: FilterSurroundings,
): Promise<FilterPlugin[]> {
  return await Promise.all(named.map(one => loadFilter(one, surroundings)))
}

async function loadFilter({ use, options }: FilterSettings, surroundings: FilterSurroundings): Promise<FilterPlugin> {
  const known = filters.find(({ name }) => name === use)
  if (known) return known.create(options, surroundings)
  const module = await importModule(use, surroundings.folder).catch((cause: unknown) => {
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    const names = filters.map(({ name }) => name).join(', ')
    const remedy = `name ${names}, a path such as ./my-filter.mjs, or a package that is installed`
    throw new DianaError('BAD_RULES', `gateway: the filter ${use} cannot be loaded: ${reason}; ${remedy}`, { cause })
  })
  const plugin = pluginIn(module)
  if (plugin === undefined) {
    const remedy = 'export default a Fastify plugin, (app, options, done) => …'
    throw new DianaError('BAD_RULES', `gateway: the filter ${use} exports no plugin: ${remedy}`)
  }
  return withOptions(use, plugin, options)
}

async function importModule(name: string, folder: string): Promise<Record<string, unknown>> {
  if (name.startsWith('.') || isAbsolute(name)) {
    const path = resolve(folder, name)
    // importing a pipe would wait without end
    await assertRegularFile(path)
    return await import(pathToFileURL(path).href)
  }
  return await import(pathToFileURL(createRequire(join(resolve(folder), 'diana.yaml')).resolve(name)).href)
}

function pluginIn({ default: exported }: Record<string, unknown>): AnyPlugin | undefined {
  if (typeof exported === 'function') return exported as AnyPlugin
  // a CommonJS module that was compiled from one with a default export
  const inner =
    typeof exported === 'object' && exported !== null && 'default' in exported ? exported.default : undefined
  return typeof inner === 'function' ? (inner as AnyPlugin) : undefined
}

/** Returns the plugin with the options of the config, and with its hooks on every call. */
function withOptions(name: string, plugin: AnyPlugin, options: object): FilterPlugin {
  const asked: FilterPlugin = (app, _options, done) => {
    const answer = plugin(app, options, done)
    // a plugin that returns a promise does not call back
    if (answer instanceof Promise) answer.then(() => done(), done)
  }
  return Object.assign(asked, {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: name,
  })
}
