import { readFile } from 'node:fs/promises'
import { type CountingOptions, serveCounting } from 'diana-limiter/counting'
import { type CountingSettings, fail, onceSupervisorIsGone, readProcessSettings, tell } from './messages.ts'

// the one that counts ends last, when its supervisor does, whichever process is asked to end first
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
onceSupervisorIsGone(() => process.exit(0))

/** Returns the ways of counting, with those of plugins that the rule file names; undefined if it names no plugins. */
async function algorithmsNamedIn(config: string): Promise<CountingOptions['algorithms']> {
  const text = await readFile(config, 'utf8')
  // most files name none, and reading YAML takes more modules than counting does
  if (!text.includes('plugins')) return undefined
  const { importPlugins, mergeExtensions, pluginsNamedIn } = await import('diana-limiter/gateway')
  return mergeExtensions({}, await importPlugins(pluginsNamedIn(text), config)).algorithms
}

try {
  const { config, socket } = readProcessSettings<CountingSettings>()
  await serveCounting({ socket, algorithms: await algorithmsNamedIn(config) })
  tell({ what: 'ready' })
} catch (error) {
  fail(error)
}
