#!/usr/bin/env node
// npm run lua: makes modules of the Lua sources, so that the packages need no file but JavaScript.
import { writeFileSync } from 'node:fs'
import { luaModules } from './lua-modules.mjs'

for (const { path, text } of luaModules()) writeFileSync(path, text)
