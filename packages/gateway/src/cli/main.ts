#!/usr/bin/env node
import { run } from './run.ts'

// a reader of the output may stop reading: `diana explain … | head -1`
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit()
  })
}

process.exitCode = await run(process.argv.slice(2), {
  input: process.stdin,
  isScreen: process.stdout.isTTY === true,
  size: () => (process.stdout.isTTY ? { columns: process.stdout.columns, rows: process.stdout.rows } : undefined),
  print: line => process.stdout.write(`${line}\n`),
  printError: line => process.stderr.write(`${line}\n`),
})
