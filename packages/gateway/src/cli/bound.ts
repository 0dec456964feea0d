import { createReadStream } from 'node:fs'
import { mergeExtensions } from 'diana-limiter/gateway'
import { CliError } from '../process/terminal.ts'
import { boundOf } from '../rehearsal/bounds/bound.ts'
import { boundLines } from '../rehearsal/bounds/lines.ts'
import { readRuleSet } from '../rehearsal/load-rules.ts'
import { serveSection } from '../serve/serve-settings.ts'
import { gatewaySection } from '../settings/gateway-settings.ts'
import { loadPlugins, readText } from './check.ts'
import type { Command } from './command.ts'

/** `diana bound`: what is the most that these rules let pass? */
export const bound: Command = {
  usage: 'RULES [--plugin FILE]… [--json]',
  details: [
    '  RULES            a rule file; - is standard input',
    '  --plugin FILE    a module whose algorithms and dimensions the rules may name; may be repeated',
    '  --json           print the result as JSON, with the schedules of calls that reach the numbers',
    '',
    'For each rule and for all rules together: the most calls of one caller and of all callers in any second, minute, hour and day.',
    'Below: rules that can never refuse, never match or are shadowed, plans stricter than cheaper ones, and keys that callers choose.',
  ],
  options: { plugin: { type: 'string', multiple: true }, json: { type: 'boolean' } },
  async run({ words, options }, terminal) {
    const [file, ...more] = words
    if (file === undefined || more.length > 0) throw new CliError(2, 'one rule file is needed: diana bound RULES')
    const name = file === '-' ? 'stdin' : file
    const text = await readText(file === '-' ? terminal.input : createReadStream(file)).catch(
      (error: NodeJS.ErrnoException) => {
        throw new CliError(1, `${file} cannot be read (${error.code}); check the path`)
      },
    )
    const plugins = (options.plugin as readonly string[] | undefined) ?? []
    const extensions = mergeExtensions({}, await loadPlugins(plugins))
    const rules = await readRuleSet(text, name, { extensions, sections: [gatewaySection, serveSection] })
    const report = await boundOf(rules.document, { extensions: rules.extensions })
    if (options.json === true) terminal.print(JSON.stringify(report, null, 2))
    else for (const line of boundLines(report)) terminal.print(line)
    return 0
  },
}
