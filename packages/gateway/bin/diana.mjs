#!/usr/bin/env node
// A file that is there before the build, so that npm can link the command when it installs.
import { existsSync } from 'node:fs'

const program = new URL('../../../build/diana-gateway/dist/diana.js', import.meta.url)
if (existsSync(program)) await import(program.href)
else {
  console.error('diana is not built yet: run npm run build')
  process.exit(1)
}
