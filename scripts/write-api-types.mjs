#!/usr/bin/env node
// Writes the types of the admin API that the dashboard is compiled with. Build the packages first: `npm run types` and `npm run build` do.
import { readFileSync, writeFileSync } from 'node:fs'
import { operations } from '../packages/gateway/dist/admin/operations/index.js'
import { openApiOf } from '../packages/gateway/dist/admin/server/openapi.js'
import { apiTypes } from './api-types.mjs'

const path = new URL('../packages/dashboard/src/api/generated.ts', import.meta.url)
const text = apiTypes(openApiOf(operations, ''))
// an equal file keeps its time, which says whether the page must be built again
if (read(path) !== text) writeFileSync(path, text)

function read(file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}
