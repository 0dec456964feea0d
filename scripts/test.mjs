import { begin } from './begin.mjs'

begin(() => import('./run-tests.mjs'))
