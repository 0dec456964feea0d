// npm run long, npm run write: runs a command of named-commands.mjs by its name, and exits with its exit code.
import { commands, listOf, unknownName } from './named-commands.mjs'
import { run, runNpm } from './run.mjs'
import { writeLua } from './write-lua.mjs'

const [kind, name, ...args] = process.argv.slice(2)

if (name === undefined || name === '--help') console.log(listOf(kind))
else if (Object.hasOwn(commands[kind], name)) process.exitCode = await start(commands[kind][name])
else {
  console.error(unknownName(kind, name))
  process.exitCode = 2
}

async function start({ run: program, env, needs }) {
  writeLua()
  // a command that only prints its options needs no build
  if (needs && !args.includes('--help')) {
    const { code } = await runNpm(['run', '--silent', needs], { show: true })
    if (code !== 0) return code
  }
  const { code } = await run(process.execPath, [...program, ...args], { show: true, env: { ...process.env, ...env } })
  return code
}
