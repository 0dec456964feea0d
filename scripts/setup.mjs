import { begin } from './begin.mjs'

begin(() => import('./install.mjs'))
