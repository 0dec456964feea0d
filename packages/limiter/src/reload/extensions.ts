import { algorithms } from '../algorithms/index.ts'
import { dimensions } from '../dimensions/index.ts'
import { sources } from '../sources/index.ts'
import { addPlugins, type Extensions, type Plugin } from './plugins.ts'

/** Returns the built-in members, or the given ones, followed by those of plugins. */
export function mergeExtensions(given: Plugin, plugins: readonly Plugin[]): Extensions {
  const own = { algorithms, dimensions, sources }
  const named = Object.fromEntries(Object.entries(given).filter(([, members]) => members !== undefined))
  return addPlugins({ ...own, ...named }, plugins)
}
