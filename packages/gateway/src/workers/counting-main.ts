import { readFile } from 'node:fs/promises'
import { serveCounting } from 'diana-limiter/counting'
import { importPlugins, mergeExtensions, pluginsNamedIn } from 'diana-limiter/gateway'
import { type CountingSettings, fail, onceSupervisorIsGone, readProcessSettings, tell } from './messages.ts'

// the one that counts ends last, when its supervisor does, whoever is told to end first
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {})
onceSupervisorIsGone(() => process.exit(0))

try {
  const { config, socket } = readProcessSettings<CountingSettings>()
  const plugins = await importPlugins(pluginsNamedIn(await readFile(config, 'utf8')), config)
  await serveCounting({ socket, algorithms: mergeExtensions({}, plugins).algorithms })
  tell({ what: 'ready' })
} catch (error) {
  fail(error)
}
