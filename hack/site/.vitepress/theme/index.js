// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

import theme from 'vitepress/theme'
import './style.css'

export default theme
