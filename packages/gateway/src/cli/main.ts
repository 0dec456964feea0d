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
  hasColors: process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb',
  onKey: process.stdin.isTTY === true && process.stdout.isTTY === true ? onKey : undefined,
  print: line => process.stdout.write(`${line}\n`),
  printError: line => process.stderr.write(`${line}\n`),
})

/** Reads keys without waiting for the end of a line, and gives the terminal back as it was. */
function onKey(listener: (key: string) => void): () => void {
  const { stdin } = process
  const onData = (keys: Buffer): void => {
    for (const key of String(keys)) listener(key)
  }
  stdin.setRawMode(true).on('data', onData)
  return () => {
    stdin.off('data', onData).setRawMode(false).pause()
  }
}
