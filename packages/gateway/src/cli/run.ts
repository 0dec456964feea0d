import { parseArgs } from 'node:util'
import type { DianaError } from 'diana-limiter'
import { CliError, type ExitCode, type Terminal } from '../process/terminal.ts'
import { version } from '../version.ts'
import type { Arguments, Command } from './command.ts'
import { type CommandEntry, commands } from './commands.ts'

/** Runs `diana` with what was written behind its name, and returns the exit code. */
export async function run(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const [name, ...rest] = args
  if (name === 'version' || name === '--version' || name === '-v') {
    terminal.print(version)
    return 0
  }
  if (name === '--help' || name === '-h' || name === 'help') return help(rest[0], terminal)
  const entry = commands.find(one => one.name === name)
  if (entry === undefined) {
    return await reportUnknownCommand(name, terminal)
  }
  return await runCommand(entry, rest, terminal)
}

async function runCommand(entry: CommandEntry, rest: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const command = await entry.load()
  try {
    const args = await parse(command, rest)
    return args.options.help === true ? await help(entry.name, terminal) : await command.run(args, terminal)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    // mistakes in rules begin with the file's name, each on a line of its own
    terminal.printError(isBadRules(error) ? message : `diana ${entry.name}: ${message}`)
    const exitCode = error instanceof CliError ? error.exitCode : 1
    if (exitCode === 2) terminal.printError(usageOf(entry, command))
    return exitCode
  }
}

async function parse(command: Command, rest: readonly string[]): Promise<Arguments> {
  try {
    const { values, positionals } = parseArgs({
      args: [...rest],
      options: { ...command.options, help: { type: 'boolean', short: 'h' } },
      allowPositionals: true,
    })
    return { words: positionals, options: values }
  } catch (error) {
    const { message } = error as Error
    const unknown = /^Unknown option '(-[^']*)'/.exec(message)?.[1]
    // Node's second sentence is about how to pass words that begin with a dash
    throw new CliError(2, unknown === undefined ? message.split('. ')[0]! : await explainOption(unknown, command))
  }
}

async function explainOption(option: string, { options }: Command): Promise<string> {
  const meant = await suggestName(option.replace(/^-+/, ''), [...Object.keys(options), 'help'])
  return `unknown option ${option}${meant === undefined ? '' : `; did you mean --${meant}?`}`
}

/** Reads the code of the error, since `instanceof` would need the library, which some commands do not load. */
function isBadRules(error: unknown): boolean {
  return error instanceof Error && (error as DianaError).code === 'BAD_RULES'
}

async function help(name: string | undefined, terminal: Terminal): Promise<ExitCode> {
  const entry = commands.find(one => one.name === name)
  if (entry !== undefined) {
    const command = await entry.load()
    for (const line of [usageOf(entry, command), '', entry.summary, '', ...command.details]) terminal.print(line)
    return 0
  }
  if (name !== undefined && !name.startsWith('-')) {
    return await reportUnknownCommand(name, terminal)
  }
  terminal.print(usage())
  terminal.print('')
  for (const { name, summary } of commands) terminal.print(`  ${name.padEnd(9)}${summary}`)
  terminal.print('')
  terminal.print('diana <command> --help shows the options of a command; diana version shows the version.')
  return 0
}

async function reportUnknownCommand(name: string | undefined, terminal: Terminal): Promise<ExitCode> {
  const names = [...commands.map(one => one.name), 'version', 'help']
  const meant = name === undefined ? undefined : await suggestName(name, names)
  const remedy = meant === undefined ? '' : `; did you mean ${meant}?`
  terminal.printError(
    name === undefined ? 'diana: no command given; try diana help' : `diana: unknown command "${name}"${remedy}`,
  )
  terminal.printError(usage())
  return 2
}

async function suggestName(name: string, names: readonly string[]): Promise<string | undefined> {
  const { suggest } = await import('diana-limiter/schema')
  return suggest(name, names)
}

function usage(): string {
  return `usage: diana ${commands.map(({ name }) => name).join(' | ')} | version | help`
}

function usageOf({ name }: CommandEntry, { usage }: Command): string {
  return `usage: diana ${name} ${usage}`
}
