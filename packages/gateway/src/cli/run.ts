import { parseArgs } from 'node:util'
import { DianaError } from 'diana-limiter'
import { suggest } from 'diana-limiter/schema'
import { version } from '../version.ts'
import { check } from './check.ts'
import { type Arguments, CliError, type Command, type ExitCode, type Terminal } from './command.ts'
import { explain } from './explain.ts'
import { importCommand } from './import.ts'
import { replayCommand } from './replay.ts'
import { serve } from './serve.ts'
import { start } from './start.ts'
import { top } from './top.ts'

const commands: readonly Command[] = [start, serve, check, explain, replayCommand, importCommand, top]

/** Runs `diana` with what was written behind its name, and returns the exit code. */
export async function run(args: readonly string[], terminal: Terminal): Promise<ExitCode> {
  const [name, ...rest] = args
  if (name === '--version' || name === '-v') {
    terminal.print(version)
    return 0
  }
  if (name === '--help' || name === '-h' || name === 'help') return help(rest[0], terminal)
  const command = commands.find(one => one.name === name)
  if (command === undefined) {
    return reportUnknownCommand(name, terminal)
  }
  return runCommand(command, rest, terminal)
}

async function runCommand(command: Command, rest: readonly string[], terminal: Terminal): Promise<ExitCode> {
  try {
    const args = parse(command, rest)
    return args.options.help === true ? help(command.name, terminal) : await command.run(args, terminal)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    // mistakes in rules begin with the file's name, each on a line of its own
    terminal.printError(isBadRules(error) ? message : `diana ${command.name}: ${message}`)
    const exitCode = error instanceof CliError ? error.exitCode : 1
    if (exitCode === 2) terminal.printError(usageOf(command))
    return exitCode
  }
}

function parse(command: Command, rest: readonly string[]): Arguments {
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
    throw new CliError(2, unknown === undefined ? message.split('. ')[0]! : explainOption(unknown, command))
  }
}

function explainOption(option: string, { options }: Command): string {
  const meant = suggest(option.replace(/^-+/, ''), [...Object.keys(options), 'help'])
  return `unknown option ${option}${meant === undefined ? '' : `; did you mean --${meant}?`}`
}

function isBadRules(error: unknown): boolean {
  return error instanceof DianaError && error.code === 'BAD_RULES'
}

function help(name: string | undefined, terminal: Terminal): ExitCode {
  const command = commands.find(one => one.name === name)
  if (command !== undefined) {
    for (const line of [usageOf(command), '', command.summary, '', ...command.details]) terminal.print(line)
    return 0
  }
  if (name !== undefined && !name.startsWith('-')) {
    return reportUnknownCommand(name, terminal)
  }
  terminal.print(usage())
  terminal.print('')
  for (const { name, summary } of commands) terminal.print(`  ${name.padEnd(9)}${summary}`)
  terminal.print('')
  terminal.print('diana <command> --help shows the options of a command; diana --version shows the version.')
  return 0
}

function reportUnknownCommand(name: string | undefined, terminal: Terminal): ExitCode {
  const names = [...commands.map(one => one.name), 'help']
  const meant = name === undefined ? undefined : suggest(name, names)
  const remedy = meant === undefined ? '' : `; did you mean ${meant}?`
  terminal.printError(
    name === undefined ? 'diana: no command given; try diana help' : `diana: unknown command "${name}"${remedy}`,
  )
  terminal.printError(usage())
  return 2
}

function usage(): string {
  return `usage: diana ${commands.map(({ name }) => name).join(' | ')} | help | --version`
}

function usageOf({ name, usage }: Command): string {
  return `usage: diana ${name} ${usage}`
}
